import { layer as suite } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Archive } from "../../src/application/formats/Archive.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import type { ContractTest } from "../../src/testing/contract.ts"
import { toPartStream } from "../support/archives.ts"

/** Loads the content of a contract suite through the WorkspaceStore of the same adapter. */
export const loadWorkspace = (archive: Archive) =>
  Effect.flatMap(WorkspaceStore, (workspaces) => workspaces.importWorkspace(toPartStream(archive)))

/** Runs a contract suite of `prompt-retrieval/testing` on an adapter. */
export const runContract = <R, E>(
  name: string,
  tests: ReadonlyArray<ContractTest<R>>,
  layer: Layer.Layer<R, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(name, (it) => {
    for (const { name, run } of tests) it.effect(name, () => run)
  })
