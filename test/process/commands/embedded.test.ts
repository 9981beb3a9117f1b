import { embedded } from "../../support/database.ts"
import { testCommands } from "./suite.ts"

testCommands(embedded)
