import { describe } from "@effect/vitest"
import { testPorts } from "../../../contracts/postgresPorts.ts"
import { migratedDatabase } from "../../../support/postgres.ts"

describe("PostgreSQL", () => testPorts("PostgreSQL", migratedDatabase))
