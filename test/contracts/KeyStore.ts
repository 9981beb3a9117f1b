import type * as Layer from "effect/Layer"
import type { KeyStore } from "../../src/application/ports/KeyStore.ts"
import type { LoadWorkspace } from "../../src/testing/contract.ts"
import { makeKeyStoreTests } from "../../src/testing/keyStoreTests.ts"
import { runContract } from "./runContract.ts"

/** Tests what every adapter of `KeyStore` must do. */
export const testKeyStore = <R, E>(
  name: string,
  load: LoadWorkspace<R>,
  layer: Layer.Layer<KeyStore | R, E>
): void => runContract(`KeyStore: ${name}`, makeKeyStoreTests(load), layer)
