import { describe } from "@effect/vitest"
import * as Layer from "effect/Layer"
import * as PostgresKeyStore from "../../../../src/adapters/outbound/postgres/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../../../../src/adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as PostgresWorkspaceStore from "../../../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import { testKeyStore } from "../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../contracts/PromptRepo.ts"
import { testWorkspaceStore } from "../../../contracts/WorkspaceStore/contract.ts"
import { migratedDatabase, noPostgres } from "../../../support/postgres.ts"

const ports = Layer.mergeAll(PostgresPromptRepo.layer, PostgresKeyStore.layer, PostgresWorkspaceStore.layer)

/** Each suite has its own database. */
const fresh = () => Layer.provide(ports, Layer.fresh(migratedDatabase))

describe.skipIf(noPostgres !== undefined)("PostgreSQL", () => {
  testKeyStore("PostgreSQL", fresh())
  testPromptRepo("PostgreSQL", fresh())
  testWorkspaceStore("PostgreSQL", fresh())
})
