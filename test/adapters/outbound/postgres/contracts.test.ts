import { testPorts } from "../../../contracts/postgresPorts.ts"
import { migratedDatabase } from "../../../support/database/server.ts"

testPorts("PostgreSQL", migratedDatabase)
