import * as Context from "effect/Context"
import * as Data from "effect/Data"
import type * as Effect from "effect/Effect"
import type { ApiKeyId, UserId } from "../../domain/ApiKey.ts"
import type { AuditEvent } from "../../domain/AuditEvent.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type {
  Folder,
  StoredKey,
  User,
  WholeWorkspace,
  Workspace,
  WorkspaceTag
} from "../../domain/Workspace.ts"
import type {
  ArchiveTooLarge,
  ContentEdit,
  InvalidContent,
  WorkspaceContent
} from "../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { Unavailable } from "./Unavailable.ts"

/** No workspace has the given id. */
export const WorkspaceNotFound = { _tag: "WorkspaceNotFound" } as const
export type WorkspaceNotFound = typeof WorkspaceNotFound

/** No user has the given email. */
export const UserNotFound = { _tag: "UserNotFound" } as const
export type UserNotFound = typeof UserNotFound

/** No key has the given id. */
export const KeyNotFound = { _tag: "KeyNotFound" } as const
export type KeyNotFound = typeof KeyNotFound

/** The key belongs to no workspace, so no key can replace it. */
export const KeyUnassigned = { _tag: "KeyUnassigned" } as const
export type KeyUnassigned = typeof KeyUnassigned

/** The key is revoked or has expired, so no key can replace it. */
export const KeyEnded = { _tag: "KeyEnded" } as const
export type KeyEnded = typeof KeyEnded

/** The user owns keys that are neither revoked nor expired. */
export class UserHasActiveKeys extends Data.TaggedError("UserHasActiveKeys")<{ readonly count: number }> {}

/** A workspace without its content. `tier` can be a tier that this program does not know. */
export interface WorkspaceInfo extends Omit<Workspace, "tier"> {
  readonly tier: string
}

/** A key as operators see it. `owner` is the email of the key's owner. */
export interface KeyInfo extends Omit<StoredKey, "created_by" | "key_hash"> {
  readonly owner: string
  readonly last_used_at: Timestamp | null
}

/** A key to store: its hash and the first and last digits of its plaintext, never the whole plaintext. */
export type NewKey = Omit<StoredKey, "workspace_id" | "created_by" | "revoked_at">

/**
 * A key that replaces another key. The new key gets the name of the replaced key. If `expires_at` is undefined,
 * `keepLifetime` computes the expiry from the replaced key.
 */
export interface ReplacementKey extends Omit<NewKey, "name" | "expires_at"> {
  readonly expires_at: NewKey["expires_at"] | undefined
}

/** The result of an import: the id of the workspace, and the numbers of items in the archive. */
export interface ImportResult {
  readonly workspace_id: string
  readonly prompts: number
  readonly versions: number
  readonly fragments: number
  readonly folders: number
  readonly tags: number
  readonly users: number
  readonly api_keys: number
  /** Numbers of written rows. The workspace, each item, each version, and each fragment or tag of a prompt is a row. */
  readonly rows: { readonly added: number; readonly changed: number; readonly removed: number }
}

/** Options of an import or an edit. */
export interface ChangeOptions {
  /** True for a dry run: the change is made and rolled back. A dry run waits for the same locks as a real change. */
  readonly dryRun?: boolean
  /** The source of the content, for the audit log. The default is `unknown`. */
  readonly source?: string
}

export interface AuditFilter {
  /** Selects the events of a workspace, even after its deletion. If absent, selects all events. */
  readonly workspace?: WorkspaceId | undefined
  readonly limit: number
}

/** The name of the person or program that makes administrative changes, for the audit log. */
export class Actor extends Context.Service<Actor, string>()("prompt-retrieval/application/ports/Actor") {}

/**
 * Port: the workspaces, users, keys and content that operators manage. Each method takes effect entirely or not at all.
 * A method records an `AuditEvent` with the name of the `Actor` in the transaction of its change. Except for
 * `recordExport`, a method that changes nothing records nothing. Emails are compared case-insensitively.
 */
export class WorkspaceStore extends Context.Service<
  WorkspaceStore,
  {
    /** Lists all workspaces, ordered by id. */
    readonly workspaces: Effect.Effect<ReadonlyArray<WorkspaceInfo>, Unavailable>
    /** Adds a workspace without content. Its id must be new. */
    readonly addWorkspace: (workspace: WorkspaceInfo) => Effect.Effect<void, Unavailable>
    /** Changes the given fields of a workspace, and returns the changed workspace. */
    readonly setWorkspace: (
      workspace: WorkspaceId,
      changes: { readonly [Field in "name" | "tier" | "billing_status"]?: Workspace[Field] | undefined }
    ) => Effect.Effect<WorkspaceInfo, WorkspaceNotFound | Unavailable>
    /**
     * Deletes a workspace with its content and keys, but deletes no user. Returns the workspace and the numbers of
     * deleted prompts and keys.
     */
    readonly deleteWorkspace: (
      workspace: WorkspaceId
    ) => Effect.Effect<
      WorkspaceInfo & { readonly prompts: number; readonly api_keys: number },
      WorkspaceNotFound | Unavailable
    >
    /** Lists the owners of a workspace's keys, ordered by id. */
    readonly users: (
      workspace: WorkspaceId
    ) => Effect.Effect<ReadonlyArray<User>, WorkspaceNotFound | Unavailable>
    /** Sets whether a user must reset the password. Returns the user. Until the reset, no key of the user is valid. */
    readonly setUser: (
      email: string,
      must_reset_password: boolean
    ) => Effect.Effect<User, UserNotFound | Unavailable>
    /**
     * Deletes a user and the user's keys. Returns the user and the number of keys. Fails with `UserHasActiveKeys` if
     * `withActiveKeys` is false and any of the keys is active at `now` (milliseconds since the epoch).
     */
    readonly deleteUser: (
      email: string,
      options: { readonly now: number; readonly withActiveKeys: boolean }
    ) => Effect.Effect<User & { readonly api_keys: number }, UserNotFound | UserHasActiveKeys | Unavailable>
    /** Lists the keys of a workspace, including revoked and expired keys, ordered by id. */
    readonly keys: (
      workspace: WorkspaceId
    ) => Effect.Effect<ReadonlyArray<KeyInfo>, WorkspaceNotFound | Unavailable>
    /** Stores a key for the user with `owner.email`. If there is no such user, adds a user with the id `newUserId`. */
    readonly addKey: (
      workspace: WorkspaceId,
      owner: { readonly email: string; readonly newUserId: UserId },
      key: NewKey
    ) => Effect.Effect<void, WorkspaceNotFound | Unavailable>
    /** Revokes a key with or without a workspace, and returns the key. An earlier revocation keeps its time. */
    readonly revokeKey: (id: ApiKeyId, at: Timestamp) => Effect.Effect<KeyInfo, KeyNotFound | Unavailable>
    /**
     * Stores `replacement` with the workspace, owner and name of key `id`. Ends key `id` as `endKey` does, and renames
     * key `id` as `toReplacedName` does. The time of the rotation is the replacement's `created_at`. Fails with
     * `KeyEnded` if key `id` is revoked or has expired, because a rotation must not undo a revocation. Returns the
     * replaced key, and the expiry of its replacement.
     */
    readonly rotateKey: (
      id: ApiKeyId,
      replacement: ReplacementKey,
      endsAt: Timestamp
    ) => Effect.Effect<
      { readonly replaced: KeyInfo; readonly expires_at: Timestamp | null },
      KeyEnded | KeyNotFound | KeyUnassigned | Unavailable
    >
    /** Lists the folders of a workspace, ordered by name, then id. */
    readonly folders: (
      workspace: WorkspaceId
    ) => Effect.Effect<ReadonlyArray<Folder>, WorkspaceNotFound | Unavailable>
    /** Lists the tags of a workspace, ordered by name. */
    readonly tags: (
      workspace: WorkspaceId
    ) => Effect.Effect<ReadonlyArray<WorkspaceTag>, WorkspaceNotFound | Unavailable>
    /** Lists events of the audit log, the latest first. */
    readonly auditEvents: (filter: AuditFilter) => Effect.Effect<ReadonlyArray<AuditEvent>, Unavailable>
    /**
     * Replaces the content of a workspace. Deletes the folders, tags, fragments, prompts and versions that `whole` does
     * not contain. Unchanged rows are neither written nor locked against changes, so a second import of the same
     * workspace changes nothing. The references and the unique values of `whole` must be valid, as `decodeArchive`
     * checks.
     *
     * An import never weakens security. An existing workspace keeps its tier and billing status. An import adds or
     * updates users and keys, but never removes a user or a key. `must_reset_password` can become true, but never false.
     * A revoked key stays revoked, and an existing key never expires later than before.
     *
     * Concurrent imports of one workspace run one after another. Fails with `InvalidContent` if another workspace has an
     * id of `whole`, if another user has a user's id or email, or if another key has a key's hash. An import changes a
     * stored key without a workspace only if the key in `whole` also has no workspace and has the same owner.
     */
    readonly importWorkspace: (
      whole: WholeWorkspace,
      options?: ChangeOptions
    ) => Effect.Effect<ImportResult, InvalidContent | Unavailable>
    /** Records in the audit log that a workspace is exported. */
    readonly recordExport: (
      workspace: WorkspaceId,
      format: "archive" | "files"
    ) => Effect.Effect<void, WorkspaceNotFound | Unavailable>
    /**
     * Returns a whole workspace from one snapshot. Lists are ordered by id, versions by number, and fragments of a
     * prompt by position. Can fail with `ArchiveTooLarge` if the archive would be larger than an import accepts.
     */
    readonly exportWorkspace: (
      workspace: WorkspaceId
    ) => Effect.Effect<WholeWorkspace, ArchiveTooLarge | WorkspaceNotFound | Unavailable>
    /** Reads the current state of a workspace's content, in the order of `exportWorkspace`. */
    readonly readContent: (
      workspace: WorkspaceId
    ) => Effect.Effect<WorkspaceContent, WorkspaceNotFound | Unavailable>
    /**
     * Passes a workspace's content to `makeEdit`, which returns an edit and a result. Applies the edit and returns the
     * result. Writes only the rows that the edit names, and never users, keys or the workspace's own row.
     *
     * If the same rows change concurrently, `makeEdit` runs again on the new content, so the edit does not overwrite the
     * concurrent change. Concurrent edits of one workspace run one after another. Fails with `InvalidContent` if the
     * edit uses an id of another workspace. The paths of the problems are paths in the edit.
     */
    readonly editContent: <A, E>(
      workspace: WorkspaceId,
      makeEdit: (content: WorkspaceContent) => Effect.Effect<readonly [ContentEdit, A], E>,
      options?: ChangeOptions
    ) => Effect.Effect<A, E | WorkspaceNotFound | InvalidContent | Unavailable>
  }
>()("prompt-retrieval/application/ports/WorkspaceStore") {}
