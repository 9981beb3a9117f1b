import * as Clock from "effect/Clock"
import type { SecureRandom } from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import { toTimestamp } from "../../domain/Timestamp.ts"
import type { ContentEdit, InvalidContent, Problem } from "../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { type CallerChange, findCallerChanges } from "../transfer/CallerChanges.ts"
import { compareForImport } from "../transfer/Comparison.ts"
import { planExport } from "../transfer/FileExport.ts"
import { type FileImport, planImport } from "../transfer/FileImport.ts"
import { InvalidFiles, parseFiles, type Texts } from "../transfer/PromptFile.ts"
import type { ChangeOptions, WorkspaceStore } from "../ports/WorkspaceStore.ts"

/**
 * Options of an import of files. With `overwrite`, the import undoes the edits that were made in the workspace since
 * the latest import. Without it, the import fails because of such edits.
 */
export interface FileImportOptions extends ChangeOptions {
  readonly overwrite?: boolean
}

/**
 * Converts problems of an edit to problems of files. The path becomes the path of the file that describes the edited
 * prompt or fragment, and the message starts with the name of the field. Other problems stay as they are.
 */
const locateInFiles = (
  { problems, count }: InvalidContent,
  [edit, { changes }]: readonly [ContentEdit, FileImport]
): InvalidFiles => {
  const locate = (problem: Problem): Problem => {
    const [, kind, index, field] = /^(prompt|fragment)s\[(\d+)\]\.?(.*)$/.exec(problem.path) ?? []
    const item = (kind === "prompt" ? edit.prompts : edit.fragments)[Number(index)]
    const path = changes.find((change) => change.kind === kind && change.id === item?.id)?.path
    return typeof path === "string" ? { path, message: `${field} ${problem.message}` } : problem
  }
  return InvalidFiles(problems.map(locate), count)
}

/** Makes the use cases for directories of files. */
export const makeFileTransfer = (store: WorkspaceStore["Service"], random: SecureRandom["Service"]) => ({
  importFiles: Effect.fn("Administration.importFiles")(function* (
    workspace: WorkspaceId,
    texts: Texts,
    options?: FileImportOptions
  ) {
    const files = yield* Effect.fromResult(parseFiles(texts))
    const now = toTimestamp(yield* Clock.currentTimeMillis)
    const runSync = Effect.runSyncWith(yield* Effect.context<never>())
    const context = { now, newId: () => runSync(random.uuidV7()) }
    let latest: readonly [ContentEdit, FileImport] | undefined
    let callerChanges: ReadonlyArray<CallerChange> = []
    const imported = yield* store
      .editContent(
        workspace,
        Effect.fnUntraced(function* (content) {
          const pairs = yield* Effect.fromResult(compareForImport(workspace, content, files))
          if (options?.dryRun === true) callerChanges = findCallerChanges(pairs)
          latest = yield* Effect.fromResult(planImport(content, pairs, options?.overwrite === true, context))
          return latest
        }),
        options
      )
      .pipe(
        Effect.catchTag("InvalidContent", (error) =>
          Effect.fail(latest === undefined ? InvalidFiles(error.problems) : locateInFiles(error, latest))
        )
      )
    return { ...imported, callerChanges }
  }),
  exportFiles: Effect.fn("Administration.exportFiles")(function* (
    workspace: WorkspaceId,
    texts: Texts,
    options?: { readonly overwrite: boolean }
  ) {
    yield* store.recordExport(workspace, "files")
    const content = yield* store.readContent(workspace)
    return yield* Effect.fromResult(planExport(workspace, content, texts, options?.overwrite))
  })
})
