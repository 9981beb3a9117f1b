import { describe } from "@effect/vitest"
import * as Layer from "effect/Layer"
import * as KeyStore from "../../../../src/adapters/outbound/postgres/PostgresKeyStore.ts"
import * as PromptRepo from "../../../../src/adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as WorkspaceStore from "../../../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import * as contracts from "../../../contracts/KeyStore.ts"
import * as promptContracts from "../../../contracts/PromptRepo.ts"
import * as workspaceContracts from "../../../contracts/WorkspaceStore.ts"
import { migratedDatabase, noPostgres } from "../../../support/postgres.ts"

const ports = Layer.mergeAll(PromptRepo.layer, KeyStore.layer, WorkspaceStore.layer)

/** Each suite has its own database. */
const fresh = () => Layer.provide(ports, Layer.fresh(migratedDatabase))

describe.skipIf(noPostgres !== undefined)("PostgreSQL", () => {
  contracts.contract("PostgreSQL", fresh())
  promptContracts.contract("PostgreSQL", fresh())
  workspaceContracts.contract("PostgreSQL", fresh())
})
