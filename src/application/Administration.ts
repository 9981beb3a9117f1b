import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { SecureRandom } from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Stream from "effect/Stream"
import type { BillingStatus, Tier } from "../domain/Access.ts"
import { type ApiKey, type ApiKeyId, hashApiKey, keyEnds, makeApiKey, type UserId } from "../domain/ApiKey.ts"
import { parseJson } from "../domain/Json.ts"
import type { WorkspaceId } from "../domain/Prompt.ts"
import { timestampOf } from "../domain/Timestamp.ts"
import {
  type Archive,
  type ArchivePart,
  ArchiveReader,
  BadArchive,
  type Fault,
  type RawPart,
  rawParts
} from "./Archive.ts"
import { archiveOfExport, type ExportPart, exportWriter } from "./ArchiveExport.ts"
import { BadFiles, type FileChange, faultsOfFiles, mergeFiles, type PromptFiles } from "./PromptFiles.ts"
import type { Unavailable } from "./Unavailable.ts"
import type { ContentEdit, WorkspaceContent } from "./WorkspaceContent.ts"
import {
  type KeyInfo,
  type KeyNotFound,
  type UserInfo,
  type UserNotFound,
  type WorkspaceInfo,
  type WorkspaceNotFound,
  WorkspaceStore
} from "./WorkspaceStore.ts"

/** A key just issued; its plaintext exists here and nowhere else (SPEC.md section 5.4). */
export interface IssuedKey {
  readonly id: ApiKeyId
  readonly key: ApiKey
}

/** How much an import brought. */
export class Imported {
  workspace_id = ""
  prompts = 0
  versions = 0
  fragments = 0
  folders = 0
  tags = 0
  users = 0
  api_keys = 0

  count(part: ArchivePart): ArchivePart {
    if (part.list === "workspace") this.workspace_id = part.item.id
    else this[part.list]++
    if (part.list === "prompts") this.versions += part.item.versions.length
    return part
  }
}

/** What operators do (DESIGN.md section 9). */
export class Administration extends Context.Service<
  Administration,
  {
    /** Every workspace, by id. */
    readonly workspaces: Effect.Effect<ReadonlyArray<WorkspaceInfo>, Unavailable>
    /** Makes a workspace without content; its billing is active. */
    readonly createWorkspace: (name: string, tier: Tier) => Effect.Effect<WorkspaceInfo, Unavailable>
    /** Changes a workspace's tier and billing, where they are given, and gives the workspace as it is then. */
    readonly setWorkspace: (
      workspace: WorkspaceId,
      changes: { readonly tier?: Tier | undefined; readonly billing_status?: BillingStatus | undefined }
    ) => Effect.Effect<WorkspaceInfo, WorkspaceNotFound | Unavailable>
    /** The owners of a workspace's keys, by id. */
    readonly users: (
      workspace: WorkspaceId
    ) => Effect.Effect<ReadonlyArray<UserInfo>, WorkspaceNotFound | Unavailable>
    /** Forces the user with this email to reset the password, or lifts that: until then no key of the user's works. */
    readonly setUser: (
      email: string,
      must_reset_password: boolean
    ) => Effect.Effect<UserInfo, UserNotFound | Unavailable>
    /** A workspace's keys, revoked ones too, by id; ids are in the order of their issue. */
    readonly keys: (
      workspace: WorkspaceId
    ) => Effect.Effect<ReadonlyArray<KeyInfo>, WorkspaceNotFound | Unavailable>
    /** Revokes a key for good (SPEC.md section 5.5); one revoked before keeps its time. */
    readonly revokeKey: (id: ApiKeyId) => Effect.Effect<KeyInfo, KeyNotFound | Unavailable>
    /**
     * Imports a workspace archive, given as the bytes of its file or as the values out of it as they come: all or
     * nothing, and the same again changes nothing. Gives how much was imported.
     */
    readonly importArchive: <E = never>(
      source: Uint8Array | Stream.Stream<RawPart, E>,
      options?: { readonly dryRun: boolean }
    ) => Effect.Effect<Imported, E | BadArchive | Unavailable>
    /**
     * Writes a workspace as an archive, which imports as the same workspace, text by text: the same workspace is
     * always the same text.
     */
    readonly exportArchive: <E>(
      workspace: WorkspaceId,
      write: (text: string) => Effect.Effect<void, E>
    ) => Effect.Effect<void, E | WorkspaceNotFound | Unavailable>
    /**
     * Makes a workspace what a directory of prompts says (docs/prompts-as-files.md), all or nothing, and gives what
     * that changed, or would change in a dry run; the same again changes nothing.
     */
    readonly importFiles: (
      workspace: WorkspaceId,
      files: PromptFiles,
      options?: { readonly dryRun: boolean }
    ) => Effect.Effect<ReadonlyArray<FileChange>, BadFiles | WorkspaceNotFound | Unavailable>
    /** A whole workspace with every version, all in memory. */
    readonly readArchive: (workspace: WorkspaceId) => Effect.Effect<Archive, WorkspaceNotFound | Unavailable>
    /** A workspace's content in its current state, archived prompts included, without its versions. */
    readonly readContent: (
      workspace: WorkspaceId
    ) => Effect.Effect<WorkspaceContent, WorkspaceNotFound | Unavailable>
    /** Issues a key of a workspace to the user with this email, who is added when unknown. */
    readonly issueKey: (
      workspace: WorkspaceId,
      email: string,
      name: string
    ) => Effect.Effect<IssuedKey, WorkspaceNotFound | Unavailable>
  }
>()("prompt-retrieval/Administration") {
  static readonly layer: Layer.Layer<Administration, never, WorkspaceStore | SecureRandom> = Layer.effect(
    Administration,
    Effect.gen(function* () {
      const store = yield* WorkspaceStore
      const random = yield* SecureRandom

      return Administration.of({
        workspaces: store.workspaces,
        createWorkspace: Effect.fn("Administration.createWorkspace")(function* (name: string, tier: Tier) {
          const id = (yield* random.uuidV7()) as WorkspaceId
          const workspace = { id, name, tier, billing_status: "active" } as const
          yield* store.addWorkspace(workspace)
          return workspace
        }),
        setWorkspace: store.setWorkspace,
        users: store.users,
        setUser: store.setUser,
        keys: store.keys,
        revokeKey: Effect.fn("Administration.revokeKey")(function* (id: ApiKeyId) {
          return yield* store.revokeKey(id, timestampOf(yield* Clock.currentTimeMillis))
        }),
        importArchive: Effect.fn("Administration.importArchive")(function* <E = never>(
          source: Uint8Array | Stream.Stream<RawPart, E>,
          options?: { readonly dryRun: boolean }
        ) {
          const raw = source instanceof Uint8Array ? yield* rawPartsOf(source) : source
          const reader = new ArchiveReader()
          const imported = new Imported()
          const parts = raw.pipe(
            Stream.map((value) => reader.read(value)),
            // After the first fault nothing more is written, as all will be refused.
            Stream.filter((part) => part !== undefined && !reader.isBad),
            Stream.map((part) => imported.count(part!)),
            Stream.concat(Stream.suspend(() => refusalOf(reader)))
          )
          yield* store.importArchive(parts, options)
          return imported
        }),
        exportArchive: (workspace, write) =>
          Effect.suspend(() => {
            const writer = exportWriter()
            let text = ""
            const flush = Effect.suspend(() => {
              const taken = text
              text = ""
              return write(taken)
            })
            const writePart = (part: ExportPart) => {
              text += writer.write(part)
              return text.length < minWriteLength ? Effect.void : flush
            }
            return store
              .exportArchive(workspace, (parts) => Effect.forEach(parts, writePart, { discard: true }))
              .pipe(
                Effect.andThen(
                  Effect.suspend(() => {
                    text += writer.end()
                    return flush
                  })
                )
              )
          }).pipe(Effect.withSpan("Administration.exportArchive")),
        importFiles: Effect.fn("Administration.importFiles")(function* (
          workspace: WorkspaceId,
          files: PromptFiles,
          options?: { readonly dryRun: boolean }
        ) {
          const faults = faultsOfFiles(files)
          if (faults.length > 0) return yield* Effect.fail(BadFiles(faults))
          const now = timestampOf(yield* Clock.currentTimeMillis)
          let edit: ContentEdit
          return yield* store
            .reviseContent(
              workspace,
              Effect.fnUntraced(function* (content) {
                // As many as a merge can need: ids are made by an effect, and the merge is pure.
                const ids = yield* Effect.replicateEffect(random.uuidV7(), idsNeeded(files))
                const merged = mergeFiles(content, files, { now, newId: () => ids.pop()! })
                edit = merged.edit
                return [merged.edit, merged.changes] as const
              }),
              options
            )
            .pipe(
              Effect.catchTag("BadArchive", ({ faults }) =>
                Effect.fail(BadFiles(faults.map((fault) => atFile(edit, files, fault))))
              )
            )
        }),
        readArchive: Effect.fn("Administration.readArchive")(function* (workspace: WorkspaceId) {
          const parts: Array<ExportPart> = []
          yield* store.exportArchive(workspace, (some) => Effect.sync(() => void parts.push(...some)))
          return archiveOfExport(parts)
        }),
        readContent: store.readContent,
        issueKey: Effect.fn("Administration.issueKey")(function* (
          workspace: WorkspaceId,
          email: string,
          name: string
        ) {
          const key = makeApiKey(yield* random.randomBytes(32))
          const id = (yield* random.uuidV7()) as ApiKeyId
          const newUserId = (yield* random.uuidV7()) as UserId
          const created_at = timestampOf(yield* Clock.currentTimeMillis)
          yield* store.addKey(
            workspace,
            { email, newUserId },
            { id, name, key_hash: hashApiKey(key), ...keyEnds(key), created_at }
          )
          return { id, key }
        })
      })
    })
  )
}

/** How many characters of an export are collected before they are written. */
const minWriteLength = 64 * 1024

/** At most a version and a folder a prompt, and its tags and fragments. */
const idsNeeded = ({ prompts }: PromptFiles): number =>
  prompts.reduce((sum, { tags, fragments }) => sum + 2 + tags.length + fragments.length, 0)

/** A fault of the edit that files led to, at the file that it comes from. */
const atFile = (edit: ContentEdit, files: PromptFiles, { path, message }: Fault): Fault => {
  const [, list, index, rest] = /^(prompts|fragments)\[(\d+)\]\.?(.*)$/.exec(path) ?? []
  if (list !== "prompts" && list !== "fragments") return { path, message }
  const id = list === "prompts" ? edit.prompts[Number(index)]?.row.id : edit.fragments[Number(index)]?.id
  const file = files[list].find((file) => file.id === id)
  return file === undefined ? { path, message } : { path: file.path, message: `${rest} ${message}` }
}

const refusalOf = (reader: ArchiveReader): Stream.Stream<never, BadArchive> =>
  reader.isBad ? Stream.fail(reader.refusal()) : Stream.empty

const rawPartsOf = (bytes: Uint8Array): Effect.Effect<Stream.Stream<RawPart>, BadArchive> =>
  Effect.map(Effect.try({ try: () => parseJson(textOf(bytes)), catch: notJson }), (json) =>
    Stream.fromIterable(rawParts(json))
  )

const textOf = (bytes: Uint8Array): string => new TextDecoder("utf-8", { fatal: true }).decode(bytes)

/** The refusal of a file that is no JSON. */
export const notJson = (error: unknown): BadArchive =>
  BadArchive([
    {
      path: "",
      message: `is not a JSON document in UTF-8: ${error instanceof Error ? error.message : String(error)}`
    }
  ])
