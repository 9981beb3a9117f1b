import { postgres } from "../../support/database.ts"
import { testCommands } from "./suite.ts"

testCommands(postgres)
