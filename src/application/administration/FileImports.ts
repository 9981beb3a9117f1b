import * as Clock from "effect/Clock"
import type { SecureRandom } from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Ref from "effect/Ref"
import type { Problem } from "../../domain/workspace/Problem.ts"
import { toTimestamp } from "../../domain/Timestamp.ts"
import {
  type ContentEdit,
  emptyEdit,
  type WorkspaceContent
} from "../../domain/workspace/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { type ContentFile, type FileChange, InvalidFiles, readItems } from "../transfer/ContentFile.ts"
import { findDuplicates, matchFiles } from "../transfer/FileMatch.ts"
import { applyFiles } from "../transfer/FileMerge.ts"
import { findEdits, toImportedFiles } from "../transfer/FileRecords.ts"
import type { ChangeOptions, WorkspaceStore } from "../ports/WorkspaceStore.ts"

/**
 * Options of an import of files. If `overwrite` is true, the import undoes conflicting edits that were made in the
 * workspace since the latest import, instead of failing.
 */
export interface FileImportOptions extends ChangeOptions {
  readonly overwrite?: boolean
}

export interface FileImport {
  readonly changes: ReadonlyArray<FileChange>
  /**
   * The path of each fragment's file, by the fragment's id. A fragment that no longer has a file keeps the path that
   * the latest import recorded.
   */
  readonly fragmentPaths: ReadonlyMap<string, string>
}

interface MatchedEdit {
  readonly edit: ContentEdit
  readonly files: ReadonlyArray<ContentFile>
}

const listFragmentPaths = (
  { importedFiles }: WorkspaceContent,
  files: ReadonlyArray<ContentFile>
): ReadonlyMap<string, string> =>
  new Map([
    ...importedFiles.flatMap(({ kind, target_id, path }) =>
      kind === "fragment" ? [[target_id, path] as const] : []
    ),
    ...files.flatMap(({ id, path, state }) => (state.kind === "fragment" ? [[id, path] as const] : []))
  ])

/**
 * Converts a problem of the edit to a problem of a file. The path becomes the path of the file that describes the
 * edited prompt or fragment, and the message then starts with the name of the field. A problem of anything else is
 * returned unchanged.
 */
const locateInFiles = ({ edit, files }: MatchedEdit, problem: Problem): Problem => {
  const { path, message } = problem
  const [, kind, index, fieldPath] = /^(prompt|fragment)s\[(\d+)\]\.?(.*)$/.exec(path) ?? []
  const row = kind === "prompt" ? edit.prompts[Number(index)]?.row : edit.fragments[Number(index)]
  const file = files.find(({ id, state }) => state.kind === kind && id === row?.id)
  return file === undefined ? problem : { path: file.path, message: `${fieldPath} ${message}` }
}

/** Makes the use cases for directories of files. */
export const makeFileImports = (store: WorkspaceStore["Service"], random: SecureRandom["Service"]) => ({
  importFiles: Effect.fn("Administration.importFiles")(function* (
    workspace: WorkspaceId,
    files: ReadonlyArray<ContentFile>,
    options?: FileImportOptions
  ) {
    const mergedAt = toTimestamp(yield* Clock.currentTimeMillis)
    const latest = yield* Ref.make<MatchedEdit>({ edit: emptyEdit, files })
    const edited = store.editContent(
      workspace,
      Effect.fnUntraced(function* (content) {
        const items = readItems(content)
        const matched = matchFiles(items, files)
        const problems = findDuplicates(matched)
        if (problems.length > 0) return yield* Effect.fail(InvalidFiles(problems))
        const runSync = Effect.runSyncWith(yield* Effect.context<never>())
        const newId = () => runSync(random.uuidV7())
        const { edit, changes } = applyFiles(content, items, matched, { now: mergedAt, newId })
        const edits = options?.overwrite === true ? undefined : findEdits(content, items, matched, changes)
        if (edits !== undefined) return yield* Effect.fail(edits)
        yield* Ref.set(latest, { edit, files: matched })
        return [edit, { changes, fragmentPaths: listFragmentPaths(content, matched) }] as const
      }),
      options
    )
    return yield* Effect.catchTag(
      edited,
      "InvalidContent",
      Effect.fnUntraced(function* ({ problems, count }) {
        const matched = yield* Ref.get(latest)
        const located = problems.map((problem) => locateInFiles(matched, problem))
        return yield* Effect.fail(InvalidFiles(located, count))
      })
    )
  }),
  recordFiles: Effect.fn("Administration.recordFiles")(
    (workspace: WorkspaceId, files: ReadonlyArray<ContentFile>) =>
      store
        .editContent(workspace, () =>
          Effect.succeed([{ ...emptyEdit, importedFiles: toImportedFiles(files) }, undefined] as const)
        )
        // This edit changes no content, so it cannot fail with `InvalidContent`.
        .pipe(Effect.catchTag("InvalidContent", Effect.die))
  )
})
