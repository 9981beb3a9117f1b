import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import { SecureRandom, uuidV7Unsafe } from "effect/crypto/SecureRandom"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Struct from "effect/Struct"
import { type ApiKey, ApiKeyId, hashApiKey, makeApiKey, toKeyEnds, UserId } from "../domain/ApiKey.ts"
import type { Tier } from "../domain/Billing.ts"
import { type Timestamp, toTimestamp } from "../domain/Timestamp.ts"
import type { WorkspaceContent } from "../domain/WorkspaceContent.ts"
import { WorkspaceId } from "../domain/WorkspaceId.ts"
import { withSpans } from "./observability/Instrumentation.ts"
import { type ChangeOptions, type WorkspaceInfo, WorkspaceStore } from "./ports/WorkspaceStore.ts"
import { decodeArchive } from "./transfer/ArchiveDecoder.ts"
import type { ImportPlan } from "./transfer/FileImport.ts"
import type { Texts } from "./transfer/PromptFile.ts"

/** A key that was just issued. `key` is its plaintext, which is stored nowhere (specification 5.4). */
export interface IssuedKey {
  readonly id: ApiKeyId
  readonly key: ApiKey
  readonly expires_at: Timestamp | null
}

interface RotationTimes {
  /** When the replaced key ends. `endKey` states the rules. */
  readonly endsAt: Timestamp
  /** When the new key expires. By default, `keepLifetime` computes this time from the replaced key. */
  readonly expiresAt?: Timestamp | undefined
}

interface FileImportOptions extends ChangeOptions {
  /** True to undo the edits that were made in the workspace since the latest import. */
  readonly overwrite?: boolean
}

const make = Effect.gen(function* () {
  const store = yield* WorkspaceStore
  const random = yield* SecureRandom
  const now = Effect.map(Clock.currentTimeMillis, toTimestamp)

  /** Makes a key. `issued` contains the plaintext, and `stored` contains the fields to store. */
  const makeKey = Effect.fnUntraced(function* <Expiry>(expires_at: Expiry) {
    const key = makeApiKey(yield* random.randomBytes(32))
    const id = ApiKeyId.make(yield* random.uuidV7())
    const stored = { id, key_hash: hashApiKey(key), ...toKeyEnds(key), created_at: yield* now, expires_at }
    return { issued: { id, key }, stored }
  })

  const useCases = yield* withSpans("Administration", {
    /** Creates a workspace without content, with billing status `active`. */
    createWorkspace: Effect.fnUntraced(function* (name: string, tier: Tier) {
      const id = WorkspaceId.make(yield* random.uuidV7())
      const workspace: WorkspaceInfo = { id, name, tier, billing_status: "active" }
      yield* store.addWorkspace(workspace)
      return workspace
    }),

    /** Issues a key to the user with this email. Adds a user if needed. Without `expiresAt`, the key never expires. */
    issueKey: Effect.fnUntraced(function* (
      workspace: WorkspaceId,
      email: string,
      name: string,
      expiresAt?: Timestamp
    ) {
      const newUserId = UserId.make(yield* random.uuidV7())
      const { issued, stored } = yield* makeKey(expiresAt ?? null)
      yield* store.addKey(workspace, { email, newUserId }, { ...stored, name })
      return { ...issued, expires_at: stored.expires_at } satisfies IssuedKey
    }),

    /** Issues a key that replaces key `id`, and ends key `id`. Returns the new key and the replaced key. */
    rotateKey: Effect.fnUntraced(function* (id: ApiKeyId, times: RotationTimes) {
      const { issued, stored } = yield* makeKey(times.expiresAt)
      return { ...issued, ...(yield* store.rotateKey(id, stored, times.endsAt)) }
    }),

    /** Revokes a key permanently (specification 5.5). */
    revokeKey: Effect.fnUntraced(function* (id: ApiKeyId) {
      return yield* store.revokeKey(id, yield* now)
    }),

    /** Deletes a user and the user's keys. Fails if `withActiveKeys` is false and one of the keys is active. */
    deleteUser: Effect.fnUntraced(function* (email: string, withActiveKeys: boolean) {
      return yield* store.deleteUser(email, { now: yield* Clock.currentTimeMillis, withActiveKeys })
    }),

    /** Decodes the parsed JSON of an archive, and imports it with `WorkspaceStore.importWorkspace`. */
    importArchive: Effect.fnUntraced(function* (json: unknown, options?: ChangeOptions) {
      return yield* store.importWorkspace(yield* Effect.fromResult(decodeArchive(json)), options)
    }),

    /** Records the export in the audit log, and then exports the workspace with `WorkspaceStore.exportWorkspace`. */
    exportArchive: Effect.fnUntraced(function* (workspace: WorkspaceId) {
      yield* store.recordExport(workspace, "archive")
      return yield* store.exportWorkspace(workspace)
    }),

    /**
     * Makes a workspace's content equal to a directory of files (docs/prompts-as-files.md). A failed import changes
     * nothing. Returns the changes and warnings, and in a dry run also the breaking changes. Without `overwrite`, fails
     * with `ConflictingEdits` if the import would undo an edit that was made in the workspace since the latest import.
     */
    importFiles: Effect.fnUntraced(function* (
      workspace: WorkspaceId,
      texts: Texts,
      options?: FileImportOptions
    ) {
      // The YAML parser is loaded only for files, because an embedder's single-file bundle cannot contain the parser.
      const { parseFiles } = yield* Effect.promise(() => import("./transfer/PromptFile.ts"))
      const { planImport, locateInFiles } = yield* Effect.promise(() => import("./transfer/FileImport.ts"))
      // The files are parsed before the edit, because the store holds a lock during an edit and can repeat the edit.
      const files = yield* Effect.fromResult(parseFiles(texts))
      // `planImport` makes ids without running an effect. `SecureRandom` has no synchronous function for ids.
      const planOptions = { ...options, now: yield* now, newId: uuidV7Unsafe }
      let latest: ImportPlan | undefined
      const makeEdit = Effect.fnUntraced(function* (content: WorkspaceContent) {
        latest = yield* Effect.fromResult(planImport(workspace, content, files, planOptions))
        return latest
      })
      return yield* Effect.catchTag(
        store.editContent(workspace, makeEdit, options),
        "InvalidContent",
        (error) => Effect.fail(locateInFiles(error, latest))
      )
    }),

    /**
     * Computes the changes that make a directory of files describe a workspace. `texts` contains the existing files.
     * Records even a failed export in the audit log. Without `overwrite`, fails with `UnimportedFiles` if the export
     * would replace or remove a file that was added or edited since the latest import.
     */
    exportFiles: Effect.fnUntraced(function* (
      workspace: WorkspaceId,
      texts: Texts,
      options?: { readonly overwrite: boolean }
    ) {
      const { planExport } = yield* Effect.promise(() => import("./transfer/FileExport.ts"))
      yield* store.recordExport(workspace, "files")
      const content = yield* store.readContent(workspace)
      return yield* Effect.fromResult(planExport(workspace, content, texts, options?.overwrite))
    })
  })
  return {
    ...Struct.pick(store, ["workspaces", "setWorkspace", "deleteWorkspace", "users", "setUser", "keys"]),
    ...Struct.pick(store, ["folders", "tags", "auditEvents"]),
    ...useCases
  }
})

/** The use cases of operators. `WorkspaceStore` documents the rules of each change. */
export class Administration extends Context.Service<Administration>()(
  "prompt-retrieval/application/Administration",
  { make }
) {
  static readonly layer = Layer.effect(Administration, Administration.make)
}
