import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { ApiKeyId, KeyHash, UserId } from "../../domain/ApiKey.ts"
import type { BillingStatus, Tier } from "../../domain/Billing.ts"
import type { InvalidContent } from "../../domain/Problem.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { ContentEdit, WorkspaceContent } from "../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { ExportPart, WorkspacePart } from "../../domain/WorkspaceParts.ts"
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

/** A workspace without its content. `tier` may be a tier that this program does not know. */
export interface WorkspaceInfo {
  readonly id: WorkspaceId
  readonly name: string
  readonly tier: string
  readonly billing_status: BillingStatus
}

/** A user as operators see it. */
export interface UserInfo {
  readonly id: UserId
  readonly email: string
  readonly must_reset_password: boolean
}

/** A key as operators see it: only the ends of its text. `owner` is the email of its owner. */
export interface KeyInfo {
  readonly id: ApiKeyId
  readonly name: string
  readonly key_start: string
  readonly key_end: string
  readonly owner: string
  readonly created_at: Timestamp
  readonly last_used_at: Timestamp | null
  readonly revoked_at: Timestamp | null
}

/** A key to store: its hash and its ends, never its plaintext. */
export interface NewKey {
  readonly id: ApiKeyId
  readonly name: string
  readonly key_hash: KeyHash
  readonly key_start: string
  readonly key_end: string
  readonly created_at: Timestamp
}

/** The changes of `setWorkspace`; an absent field stays as it is. */
export interface WorkspaceChanges {
  readonly tier?: Tier | undefined
  readonly billing_status?: BillingStatus | undefined
}

/** A dry run fails where the change would fail. It changes nothing and locks nothing. */
export interface ChangeOptions {
  readonly dryRun: boolean
}

/** The methods of `WorkspaceStore` that operators use as they are. */
export interface WorkspaceDirectory {
  /** Lists all workspaces, ordered by id. */
  readonly workspaces: Effect.Effect<ReadonlyArray<WorkspaceInfo>, Unavailable>
  /** Changes the tier and the billing status of a workspace. Returns the changed workspace. */
  readonly setWorkspace: (
    workspace: WorkspaceId,
    changes: WorkspaceChanges
  ) => Effect.Effect<WorkspaceInfo, WorkspaceNotFound | Unavailable>
  /** Lists the owners of a workspace's keys, ordered by id. */
  readonly users: (
    workspace: WorkspaceId
  ) => Effect.Effect<ReadonlyArray<UserInfo>, WorkspaceNotFound | Unavailable>
  /**
   * Sets whether a user must reset the password; until the reset, none of the user's keys works. Emails are compared
   * without case. Returns the changed user.
   */
  readonly setUser: (
    email: string,
    must_reset_password: boolean
  ) => Effect.Effect<UserInfo, UserNotFound | Unavailable>
  /** Lists the keys of a workspace, revoked keys included, ordered by id, which is the order of issue. */
  readonly keys: (
    workspace: WorkspaceId
  ) => Effect.Effect<ReadonlyArray<KeyInfo>, WorkspaceNotFound | Unavailable>
  /** Reads the current state of a workspace's content: lists ordered by id, fragments of a prompt by position. */
  readonly readContent: (
    workspace: WorkspaceId
  ) => Effect.Effect<WorkspaceContent, WorkspaceNotFound | Unavailable>
}

/** Port: the workspaces, users, keys and content that operators change. Each method applies whole or not at all. */
export class WorkspaceStore extends Context.Service<
  WorkspaceStore,
  WorkspaceDirectory & {
    /** Adds a workspace without content. Its id must be new. */
    readonly addWorkspace: (workspace: WorkspaceInfo) => Effect.Effect<void, Unavailable>
    /** Revokes a key of any workspace or of none. A key that is already revoked keeps its time. Returns the key. */
    readonly revokeKey: (id: ApiKeyId, at: Timestamp) => Effect.Effect<KeyInfo, KeyNotFound | Unavailable>
    /**
     * Stores a key of a workspace. Its owner is the user with the email, compared without case; an unknown user is added
     * under `newUserId`.
     */
    readonly addKey: (
      workspace: WorkspaceId,
      owner: { readonly email: string; readonly newUserId: UserId },
      key: NewKey
    ) => Effect.Effect<void, WorkspaceNotFound | Unavailable>
    /**
     * Replaces the content of a workspace: folders, tags, fragments, prompts and versions that the parts do not contain
     * are deleted. Rows that do not change are neither written nor locked, so importing the same parts again changes
     * nothing.
     *
     * An import never weakens security: an existing workspace keeps its tier and billing status, users and keys are
     * added or updated but never removed, `must_reset_password` only becomes true, and a revoked key stays revoked.
     *
     * `parts` are in the order that `WorkspacePart` states, with unique ids and no dangling references. The store is not
     * used before the stream ends; if the stream fails, nothing changes. Fails with `InvalidContent` if an id belongs to
     * another workspace, the id or email of a user to another user, or the hash of a key to another key.
     */
    readonly importWorkspace: <E = never>(
      parts: Stream.Stream<WorkspacePart, E>,
      options?: ChangeOptions
    ) => Effect.Effect<void, E | InvalidContent | Unavailable>
    /**
     * Passes a whole workspace to `sink`, part by part, from one snapshot: lists ordered by id, versions by number,
     * fragments of a prompt by position, keys with their owners. Only a few parts are in memory at a time.
     */
    readonly exportWorkspace: <E>(
      workspace: WorkspaceId,
      sink: (parts: ReadonlyArray<ExportPart>) => Effect.Effect<void, E>
    ) => Effect.Effect<void, E | WorkspaceNotFound | Unavailable>
    /**
     * Passes a workspace's content to `revise`, applies the edit that `revise` returns and returns its other result.
     * Writes only the rows that the edit names, and never users, keys or the workspace's own row.
     *
     * A concurrent change of the same rows is never overwritten: `revise` runs again on the new content. Concurrent
     * revisions of one workspace run one after the other. Fails with `InvalidContent` if the edit uses an id of another
     * workspace; paths are those of the edit.
     */
    readonly reviseContent: <A, E>(
      workspace: WorkspaceId,
      revise: (content: WorkspaceContent) => Effect.Effect<readonly [ContentEdit, A], E>,
      options?: ChangeOptions
    ) => Effect.Effect<A, E | WorkspaceNotFound | InvalidContent | Unavailable>
  }
>()("prompt-retrieval/WorkspaceStore") {}
