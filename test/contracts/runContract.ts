import { layer as suite } from "@effect/vitest"
import type * as Layer from "effect/Layer"
import type { ContractTest } from "../../src/testing/promptRepoTests.ts"

/** Runs a contract suite of `prompt-retrieval/testing` on an adapter. */
export const runContract = <R, E>(
  name: string,
  tests: ReadonlyArray<ContractTest<R>>,
  layer: Layer.Layer<R, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(name, (it) => {
    for (const { name, run } of tests) it.effect(name, () => run)
  })
