import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type * as Stream from "effect/Stream"
import type { BillingStatus, Tier } from "../domain/Access.ts"
import type { ApiKeyId, KeyHash, UserId } from "../domain/ApiKey.ts"
import type { WorkspaceId } from "../domain/Prompt.ts"
import type { Timestamp } from "../domain/Timestamp.ts"
import type { Archive, ArchivePart, BadArchive } from "./Archive.ts"
import type { ExportPart } from "./ArchiveExport.ts"
import type { Unavailable } from "./Unavailable.ts"
import type { ContentEdit, WorkspaceContent } from "./WorkspaceContent.ts"

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
     * Nothing of it weakens a state of security: an existing workspace keeps tier and billing, users and keys are
     * added or updated and never removed, `must_reset_password` only becomes true, a revoked key stays revoked. Rows
     * that are as the archive has them are neither written nor locked. Fails, changing nothing, where an id is another
     * workspace's, a user's id or email is another user's, or a key's hash is another key's. Importing the same
     * archive again changes nothing. A dry run fails where the import would, changes nothing and locks nothing. The
     * archive comes whole or as the stream of its parts in their order, and its parts refer to each other as
     * `ArchiveReader` demands; where the stream fails, nothing has changed. The store is not used until the stream
     * has ended.
     */
    readonly importArchive: <E = never>(
      archive: Archive | Stream.Stream<ArchivePart, E>,
      options?: { readonly dryRun: boolean }
    ) => Effect.Effect<void, E | BadArchive | Unavailable>
    /**
     * Hands a workspace's archive to `sink`, piece by piece, as it is at one moment: lists by id, versions by number,
     * fragments of a prompt by position. It has the workspace's keys and their owners. However much the workspace
     * holds, few pieces are in memory at a time.
     */
    readonly exportArchive: <E>(
      workspace: WorkspaceId,
      sink: (parts: ReadonlyArray<ExportPart>) => Effect.Effect<void, E>
    ) => Effect.Effect<void, E | WorkspaceNotFound | Unavailable>
    /** Reads a workspace's content as it is at one moment, lists by id, fragments of a prompt by position. */
    readonly readContent: (
      workspace: WorkspaceId
    ) => Effect.Effect<WorkspaceContent, WorkspaceNotFound | Unavailable>
    /**
     * Reads a workspace's content, as `readContent` does, and makes the edit that `revise` derives from it, whole or
     * not at all; gives the other result of `revise`. Writes only the rows that the edit names, and never users, keys or
     * the workspace's own row. A concurrent change of the same rows is never overwritten: then `revise` runs again, on
     * the new content. Concurrent revisions of one workspace take turns. Fails like `importArchive` where the edit
     * brings an id that is another workspace's; paths of faults are places in the edit. A dry run fails where the
     * revision would, changes nothing and locks nothing.
     */
    readonly reviseContent: <A, E>(
      workspace: WorkspaceId,
      revise: (content: WorkspaceContent) => Effect.Effect<readonly [ContentEdit, A], E>,
      options?: { readonly dryRun: boolean }
    ) => Effect.Effect<A, E | WorkspaceNotFound | BadArchive | Unavailable>
    /** Stores a key of the workspace; `email`, compared without case, is its owner, who is added when unknown under `newUserId`. */
    readonly addKey: (
      workspace: WorkspaceId,
      owner: { readonly email: string; readonly newUserId: UserId },
      key: NewKey
    ) => Effect.Effect<void, WorkspaceNotFound | Unavailable>
  }
>()("prompt-retrieval/WorkspaceStore") {}
