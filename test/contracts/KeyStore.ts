import type * as Layer from "effect/Layer"
import type { KeyStore } from "../../src/application/ports/KeyStore.ts"
import type { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { makeKeyStoreTests } from "../../src/testing/keyStoreTests.ts"
import { loadArchive } from "../support/archives.ts"
import { runContract } from "./runContract.ts"

/** Tests what every adapter of `KeyStore` must do. */
export const testKeyStore = <E>(name: string, layer: Layer.Layer<KeyStore | WorkspaceStore, E>): void =>
  runContract(`KeyStore: ${name}`, makeKeyStoreTests(loadArchive), layer)
