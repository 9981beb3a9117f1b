import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { SecureRandom } from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as MutableRef from "effect/MutableRef"
import * as Ref from "effect/Ref"
import * as Stream from "effect/Stream"
import { type ApiKey, type ApiKeyId, hashApiKey, keyEnds, makeApiKey, type UserId } from "../domain/ApiKey.ts"
import type { Tier } from "../domain/Billing.ts"
import type { InvalidContent, Problem } from "../domain/Problem.ts"
import { toTimestamp } from "../domain/Timestamp.ts"
import type { ContentEdit } from "../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import type { WorkspacePart } from "../domain/WorkspaceParts.ts"
import { ArchiveReader } from "./formats/ArchiveReader.ts"
import { ArchiveWriter } from "./formats/ArchiveWriter.ts"
import { applyFiles } from "./formats/FileMerge.ts"
import { type FileChange, findFileProblems, InvalidFiles, type PromptFiles } from "./formats/PromptFiles.ts"
import type { RawPart } from "./formats/RawPart.ts"
import type { Unavailable } from "./ports/Unavailable.ts"
import {
  type ChangeOptions,
  type KeyInfo,
  type KeyNotFound,
  type WorkspaceDirectory,
  type WorkspaceInfo,
  type WorkspaceNotFound,
  WorkspaceStore
} from "./ports/WorkspaceStore.ts"

/** A key that was just issued. Its plaintext is stored nowhere (specification 5.4). */
export interface IssuedKey {
  readonly id: ApiKeyId
  readonly key: ApiKey
}

/** The number of items that an import contained. */
export interface ImportSummary {
  readonly workspace_id: string
  readonly prompts: number
  readonly versions: number
  readonly fragments: number
  readonly folders: number
  readonly tags: number
  readonly users: number
  readonly api_keys: number
}

/** The use cases of operators. */
export class Administration extends Context.Service<
  Administration,
  WorkspaceDirectory & {
    /** Creates a workspace without content, with billing status `active`. */
    readonly createWorkspace: (name: string, tier: Tier) => Effect.Effect<WorkspaceInfo, Unavailable>
    /** Issues a key of a workspace to the user with this email. Adds the user if the email is unknown. */
    readonly issueKey: (
      workspace: WorkspaceId,
      email: string,
      name: string
    ) => Effect.Effect<IssuedKey, WorkspaceNotFound | Unavailable>
    /** Revokes a key permanently (specification 5.5). A key that is already revoked keeps its revocation time. Returns the key. */
    readonly revokeKey: (id: ApiKeyId) => Effect.Effect<KeyInfo, KeyNotFound | Unavailable>
    /**
     * Imports an archive, all or nothing, and returns the number of its items. Importing the same archive again changes
     * nothing. `WorkspaceStore.importWorkspace` states which rows an import changes.
     */
    readonly importArchive: <E = never>(
      source: Stream.Stream<RawPart, E>,
      options?: ChangeOptions
    ) => Effect.Effect<ImportSummary, E | InvalidContent | Unavailable>
    /**
     * Writes a workspace as an archive, which imports as the same workspace. The same workspace always gives the same
     * text.
     */
    readonly exportArchive: <E>(
      workspace: WorkspaceId,
      write: (text: string) => Effect.Effect<void, E>
    ) => Effect.Effect<void, E | WorkspaceNotFound | Unavailable>
    /**
     * Makes a workspace's content match a directory of files (docs/prompts-as-files.md), all or nothing. Returns
     * the changes, also in a dry run. Importing the same files again changes nothing.
     */
    readonly importFiles: (
      workspace: WorkspaceId,
      files: PromptFiles,
      options?: ChangeOptions
    ) => Effect.Effect<ReadonlyArray<FileChange>, InvalidFiles | WorkspaceNotFound | Unavailable>
  }
>()("prompt-retrieval/Administration") {
  static readonly layer: Layer.Layer<Administration, never, WorkspaceStore | SecureRandom> = Layer.effect(
    Administration,
    Effect.gen(function* () {
      const store = yield* WorkspaceStore
      const random = yield* SecureRandom
      const { workspaces, setWorkspace, users, setUser, keys, readContent } = store
      const now = Effect.map(Clock.currentTimeMillis, toTimestamp)

      return Administration.of({
        workspaces,
        setWorkspace,
        users,
        setUser,
        keys,
        readContent,
        createWorkspace: Effect.fn("Administration.createWorkspace")(function* (name: string, tier: Tier) {
          const id = (yield* random.uuidV7()) as WorkspaceId
          const workspace = { id, name, tier, billing_status: "active" } as const
          yield* store.addWorkspace(workspace)
          return workspace
        }),
        issueKey: Effect.fn("Administration.issueKey")(function* (
          workspace: WorkspaceId,
          email: string,
          name: string
        ) {
          const key = makeApiKey(yield* random.randomBytes(32))
          const id = (yield* random.uuidV7()) as ApiKeyId
          const newUserId = (yield* random.uuidV7()) as UserId
          const created_at = yield* now
          yield* store.addKey(
            workspace,
            { email, newUserId },
            { id, name, key_hash: hashApiKey(key), ...keyEnds(key), created_at }
          )
          return { id, key }
        }),
        revokeKey: Effect.fn("Administration.revokeKey")(function* (id: ApiKeyId) {
          return yield* store.revokeKey(id, yield* now)
        }),
        importArchive: Effect.fn("Administration.importArchive")(function* <E = never>(
          source: Stream.Stream<RawPart, E>,
          options?: ChangeOptions
        ) {
          const summary = MutableRef.make(emptySummary)
          const parts = Stream.map(readParts(source), (part) => {
            MutableRef.update(summary, (counts) => addPart(counts, part))
            return part
          })
          yield* store.importWorkspace(parts, options)
          return MutableRef.get(summary)
        }),
        exportArchive: (workspace, write) =>
          Effect.suspend(() => {
            const writer = new ArchiveWriter()
            const buffer = makeBuffer(write)
            const exported = store.exportWorkspace(workspace, (parts) =>
              Effect.forEach(parts, (part) => buffer.append(writer.write(part)), { discard: true })
            )
            const end = Effect.suspend(() => buffer.end(writer.end()))
            return Effect.andThen(exported, end)
          }).pipe(Effect.withSpan("Administration.exportArchive")),
        importFiles: Effect.fn("Administration.importFiles")(function* (
          workspace: WorkspaceId,
          files: PromptFiles,
          options?: ChangeOptions
        ) {
          const problems = findFileProblems(files)
          if (problems.length > 0) return yield* Effect.fail(InvalidFiles(problems))
          const mergedAt = yield* now
          const latestEdit = yield* Ref.make<ContentEdit | undefined>(undefined)
          const revised = store.reviseContent(
            workspace,
            Effect.fnUntraced(function* (content) {
              // As many ids as the merge can need: ids come from an effect, and the merge is pure.
              const ids = yield* Effect.replicateEffect(random.uuidV7(), countNewIds(files))
              const newId = () => ids.pop() ?? outOfIds()
              const { edit, changes } = applyFiles(content, files, { now: mergedAt, newId })
              yield* Ref.set(latestEdit, edit)
              return [edit, changes] as const
            }),
            options
          )
          return yield* Effect.catchTag(
            revised,
            "InvalidContent",
            Effect.fnUntraced(function* ({ problems, count }) {
              const edit = yield* Ref.get(latestEdit)
              const located = problems.map((problem) => locateInFiles(edit, files, problem))
              return yield* Effect.fail(InvalidFiles(located, count))
            })
          )
        })
      })
    })
  )
}

const emptySummary: ImportSummary = {
  workspace_id: "",
  prompts: 0,
  versions: 0,
  fragments: 0,
  folders: 0,
  tags: 0,
  users: 0,
  api_keys: 0
}

const addPart = (summary: ImportSummary, part: WorkspacePart): ImportSummary => {
  switch (part.list) {
    case "workspace":
      return { ...summary, workspace_id: part.item.id }
    case "prompts":
      return {
        ...summary,
        prompts: summary.prompts + 1,
        versions: summary.versions + part.item.versions.length
      }
    default:
      return { ...summary, [part.list]: summary[part.list] + 1 }
  }
}

/**
 * Reads the parts of a workspace from an archive. Emits nothing after the first problem, because the import will fail;
 * fails with all problems at the end.
 */
const readParts = <E>(source: Stream.Stream<RawPart, E>): Stream.Stream<WorkspacePart, E | InvalidContent> =>
  Stream.suspend(() => {
    const reader = new ArchiveReader()
    const end: Stream.Stream<never, InvalidContent> = Stream.suspend(() =>
      reader.hasProblems ? Stream.fail(reader.toError()) : Stream.empty
    )
    return source.pipe(
      Stream.map((raw) => reader.read(raw)),
      Stream.filter((part): part is WorkspacePart => part !== undefined && !reader.hasProblems),
      Stream.concat(end)
    )
  })

/** The number of characters of an export that are collected before they are written. */
const minWriteLength = 64 * 1024

/** Collects text and writes it in large pieces. */
const makeBuffer = <E>(write: (text: string) => Effect.Effect<void, E>) => {
  let buffered = ""
  const end = (text: string): Effect.Effect<void, E> => {
    const whole = buffered + text
    buffered = ""
    return write(whole)
  }
  const append = (text: string): Effect.Effect<void, E> => {
    if (buffered.length + text.length >= minWriteLength) return end(text)
    buffered += text
    return Effect.void
  }
  return { append, end }
}

/** Returns the maximum number of ids that a merge needs: each prompt's version, folder, tags and fragments. */
const countNewIds = ({ prompts }: PromptFiles): number =>
  prompts.reduce((sum, { tags, fragments }) => sum + 2 + tags.length + fragments.length, 0)

const outOfIds = (): never => {
  throw new Error("the merge needed more ids than countNewIds")
}

/** Replaces the path in the edit of a problem with the path of the file that the row comes from. */
const locateInFiles = (edit: ContentEdit | undefined, files: PromptFiles, problem: Problem): Problem => {
  const { path, message } = problem
  const [, list, index, rest] = /^(prompts|fragments)\[(\d+)\]\.?(.*)$/.exec(path) ?? []
  if (list !== "prompts" && list !== "fragments") return problem
  const id = list === "prompts" ? edit?.prompts[Number(index)]?.row.id : edit?.fragments[Number(index)]?.id
  const file = files[list].find((file) => file.id === id)
  return file === undefined ? problem : { path: file.path, message: `${rest} ${message}` }
}
