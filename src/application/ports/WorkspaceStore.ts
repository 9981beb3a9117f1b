import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { BillingStatus, Tier } from "../../domain/Billing.ts"
import type { ApiKeyId, KeyHash, UserId } from "../../domain/ApiKey.ts"
import type { WorkspaceId } from "../../domain/Prompt.ts"
import type { Timestamp } from "../../domain/Timestamp.ts"
import type { Archive, ArchivePart, InvalidArchive } from "../formats/Archive.ts"
import type { Unavailable } from "./Unavailable.ts"

/** There is no workspace with that id. */
export const WorkspaceNotFound = { _tag: "WorkspaceNotFound" } as const
export type WorkspaceNotFound = typeof WorkspaceNotFound

/** There is no user with that email. */
export const UserNotFound = { _tag: "UserNotFound" } as const
export type UserNotFound = typeof UserNotFound

/** There is no key with that id. */
export const KeyNotFound = { _tag: "KeyNotFound" } as const
export type KeyNotFound = typeof KeyNotFound

/** A workspace without its content; its tier is any text, as the editor may know more of them. */
export interface WorkspaceInfo {
  readonly id: WorkspaceId
  readonly name: string
  readonly tier: string
  readonly billing_status: BillingStatus
}

/** A user, as operators see one. */
export interface UserInfo {
  readonly id: UserId
  readonly email: string
  readonly must_reset_password: boolean
}

/** A key, as operators see one: of its text only the ends, of its owner the email. */
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

/** A key about to be stored: its hash and its ends, never its plaintext. */
export interface NewKey {
  readonly id: ApiKeyId
  readonly name: string
  readonly key_hash: KeyHash
  readonly key_start: string
  readonly key_end: string
  readonly created_at: Timestamp
}

/** Port: what operators change. Each method happens whole or not at all. */
export class WorkspaceStore extends Context.Service<
  WorkspaceStore,
  {
    /** Every workspace, by id. */
    readonly workspaces: Effect.Effect<ReadonlyArray<WorkspaceInfo>, Unavailable>
    /** Adds a workspace without content; its id is a new one. */
    readonly addWorkspace: (workspace: WorkspaceInfo) => Effect.Effect<void, Unavailable>
    /** Changes a workspace's tier and billing, where they are given, and gives the workspace as it is then. */
    readonly setWorkspace: (
      workspace: WorkspaceId,
      changes: { readonly tier?: Tier | undefined; readonly billing_status?: BillingStatus | undefined }
    ) => Effect.Effect<WorkspaceInfo, WorkspaceNotFound | Unavailable>
    /** The owners of a workspace's keys, by id. */
    readonly users: (
      workspace: WorkspaceId
    ) => Effect.Effect<ReadonlyArray<UserInfo>, WorkspaceNotFound | Unavailable>
    /** Says whether the user with this email, compared without case, must reset, and gives the user as it is then. */
    readonly setUser: (
      email: string,
      must_reset_password: boolean
    ) => Effect.Effect<UserInfo, UserNotFound | Unavailable>
    /** A workspace's keys, revoked ones too, by id. */
    readonly keys: (
      workspace: WorkspaceId
    ) => Effect.Effect<ReadonlyArray<KeyInfo>, WorkspaceNotFound | Unavailable>
    /** Revokes a key, of whatever workspace or of none, and gives it as it is then; one revoked before keeps its time. */
    readonly revokeKey: (id: ApiKeyId, at: Timestamp) => Effect.Effect<KeyInfo, KeyNotFound | Unavailable>
    /**
     * Makes the workspace's content the archive's: folders, tags, fragments, prompts and versions that it lacks go.
     * Nothing of it weakens a state of security (DESIGN.md section 9): an existing workspace keeps tier and billing,
     * users and keys are added or updated and never removed, `must_reset_password` only becomes true, a revoked key
     * stays revoked. Fails, changing nothing, where an id is another workspace's, a user's id or email is another
     * user's, or a key's hash is another key's. Importing the same archive again changes nothing. A dry run
     * fails where the import would, and changes nothing. The archive comes whole or as the stream of its parts in
     * their order; where the stream fails, nothing has changed.
     */
    readonly importArchive: <E = never>(
      archive: Archive | Stream.Stream<ArchivePart, E>,
      options?: { readonly dryRun: boolean }
    ) => Effect.Effect<void, E | InvalidArchive | Unavailable>
    /**
     * Hands a workspace's archive to `sink`, part by part, as it is at one moment: lists by id, versions by number,
     * fragments of a prompt by position. It has the workspace's keys and their owners.
     */
    readonly exportArchive: <E>(
      workspace: WorkspaceId,
      sink: (parts: ReadonlyArray<ArchivePart>) => Effect.Effect<void, E>
    ) => Effect.Effect<void, E | WorkspaceNotFound | Unavailable>
    /**
     * Makes a workspace what `revise` makes of its archive, as `importArchive` would: nobody else changes its content
     * between the two. Gives what `revise` gives beside.
     */
    readonly reviseArchive: <A, E>(
      workspace: WorkspaceId,
      revise: (archive: Archive) => Effect.Effect<readonly [Archive, A], E>,
      options?: { readonly dryRun: boolean }
    ) => Effect.Effect<A, E | WorkspaceNotFound | InvalidArchive | Unavailable>
    /** Stores a key of the workspace; `email`, compared without case, is its owner, who is added when unknown under `newUserId`. */
    readonly addKey: (
      workspace: WorkspaceId,
      owner: { readonly email: string; readonly newUserId: UserId },
      key: NewKey
    ) => Effect.Effect<void, WorkspaceNotFound | Unavailable>
  }
>()("prompt-retrieval/WorkspaceStore") {}
