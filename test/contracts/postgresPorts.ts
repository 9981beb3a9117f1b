import { layer as suite } from "@effect/vitest"
import * as Layer from "effect/Layer"
import * as PostgresKeyStore from "../../src/adapters/outbound/postgres/keys/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../../src/adapters/outbound/postgres/prompts/PostgresPromptRepo.ts"
import { makeKeyStoreTests } from "../../src/testing/keyStoreTests.ts"
import { makePromptRepoTests } from "../../src/testing/promptRepoTests.ts"
import { loadArchive } from "../support/archives.ts"
import type { migratedDatabase } from "../support/database/server.ts"
import { workspaceStore } from "../support/database/workspaceStore.ts"
import { testFileTransfer } from "./FileTransfer.ts"
import { runContract } from "./runContract.ts"
import { testAudit } from "./WorkspaceStore/Audit.ts"
import { testDirectory } from "./WorkspaceStore/Directory.ts"
import { testEdit } from "./WorkspaceStore/Edit.ts"
import { testImport } from "./WorkspaceStore/Import.ts"
import { testKeys } from "./WorkspaceStore/Keys.ts"

const ports = Layer.mergeAll(PostgresPromptRepo.layer, PostgresKeyStore.layer, workspaceStore)

/**
 * Runs the contract suites of the PostgreSQL stores, and of imports and exports of files. Each suite gets a new
 * database.
 */
export const testPorts = <E>(
  name: string,
  database: Layer.Layer<Layer.Success<typeof migratedDatabase>, E>
) => {
  const fresh = () => Layer.provide(ports, Layer.fresh(database))
  runContract(`KeyStore: ${name}`, makeKeyStoreTests(loadArchive), fresh())
  runContract(`PromptRepo: ${name}`, makePromptRepoTests(loadArchive), fresh())
  suite(fresh(), { excludeTestServices: true, timeout: "60 seconds" })(`WorkspaceStore: ${name}`, (it) => {
    for (const test of [testDirectory, testKeys, testAudit, testImport, testEdit]) test(it)
  })
  testFileTransfer(name, fresh())
}
