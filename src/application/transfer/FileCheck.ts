import * as Result from "effect/Result"
import type { Problem } from "../../domain/WorkspaceContent.ts"
import { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { listInterfaces, type PromptInterface } from "./CallerChanges.ts"
import { pairFiles } from "./FileImport.ts"
import { type InvalidFiles, parsePromptFiles, type Texts } from "./PromptFile.ts"
import { findSlotWarnings } from "./SlotWarnings.ts"

/** Any workspace: the ids of prompts are only compared with ids from the same workspace. */
const workspace = WorkspaceId.make("00000000-0000-0000-0000-000000000000")

const emptyContent = { folders: [], tags: [], fragments: [], prompts: [], importedStates: [] }

/** A prompt of a directory of files, and the path of its file. */
export interface CheckedPrompt extends PromptInterface {
  readonly path: string
}

/** The prompts of a directory, and the warnings about slots. */
export interface FileCheck {
  readonly prompts: ReadonlyArray<CheckedPrompt>
  readonly warnings: ReadonlyArray<Problem>
}

/** Checks a directory of files as an import into an empty workspace does. */
export const checkFiles = (texts: Texts): Result.Result<FileCheck, InvalidFiles> =>
  Result.flatMap(parsePromptFiles(workspace, texts), (files) =>
    Result.map(pairFiles(emptyContent, files), () => {
      const paths = new Map(files.map(({ id, path, state: { kind } }) => [`${kind} ${id}`, path]))
      return {
        prompts: listInterfaces(files).map((prompt) => ({
          ...prompt,
          path: paths.get(`prompt ${prompt.id}`) ?? ""
        })),
        warnings: findSlotWarnings(files)
      }
    })
  )
