import { layer as suite } from "@effect/vitest"
import type * as Layer from "effect/Layer"
import type { KeyStore } from "../../../src/application/ports/KeyStore.ts"
import type { PromptRepo } from "../../../src/application/ports/PromptRepo.ts"
import type { WorkspaceStore } from "../../../src/application/ports/WorkspaceStore.ts"
import { testAudit } from "./Audit.ts"
import { testDirectory } from "./Directory.ts"
import { testExport } from "./Export.ts"
import { testImport } from "./Import.ts"
import { testKeys } from "./Keys.ts"
import { testEdit } from "./Edit.ts"

/** Tests what every adapter of `WorkspaceStore` must do. */
export const testWorkspaceStore = <E>(
  name: string,
  layer: Layer.Layer<PromptRepo | KeyStore | WorkspaceStore, E>
): void =>
  suite(layer, { excludeTestServices: true, timeout: "60 seconds" })(`WorkspaceStore: ${name}`, (it) => {
    testDirectory(it)
    testKeys(it)
    testAudit(it)
    testImport(it)
    testExport(it)
    testEdit(it)
  })
