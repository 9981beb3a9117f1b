import { layer as suite } from "@effect/vitest"
import type * as Layer from "effect/Layer"
import type { KeyStore } from "../../src/application/ports/KeyStore.ts"
import type { PromptRepo } from "../../src/application/ports/PromptRepo.ts"
import type { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { testDirectory } from "./WorkspaceStore/Directory.ts"
import { testExport } from "./WorkspaceStore/Export.ts"
import { testImport } from "./WorkspaceStore/Import.ts"
import { testKeys } from "./WorkspaceStore/Keys.ts"
import { testRevision } from "./WorkspaceStore/Revision.ts"

/** The rules that every adapter of `WorkspaceStore` must follow. */
export const contract = <E>(
  name: string,
  layer: Layer.Layer<PromptRepo | KeyStore | WorkspaceStore, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(`WorkspaceStore: ${name}`, (it) => {
    testDirectory(it)
    testKeys(it)
    testImport(it)
    testExport(it)
    testRevision(it)
  })
