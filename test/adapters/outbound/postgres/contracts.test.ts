import { testPorts } from "../../../contracts/postgresPorts.ts"
import { migratedDatabase } from "../../../support/postgres.ts"

testPorts("PostgreSQL", migratedDatabase)
