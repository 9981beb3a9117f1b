import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { ApiKeyId, KeyHash, UserId } from "../domain/ApiKey.ts"
import type { WorkspaceId } from "../domain/Prompt.ts"
import type { Timestamp } from "../domain/Timestamp.ts"
import type { Archive, BadArchive } from "./Archive.ts"
import type { Unavailable } from "./Unavailable.ts"

/** There is no workspace with that id. */
export const WorkspaceNotFound = { _tag: "WorkspaceNotFound" } as const
export type WorkspaceNotFound = typeof WorkspaceNotFound

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
    /** How many workspaces there are. */
    readonly count: Effect.Effect<number, Unavailable>
    /**
     * Makes the workspace's content the archive's: folders, tags, fragments, prompts and versions that it lacks go.
     * Nothing of it weakens a state of security (DESIGN.md section 9): an existing workspace keeps tier and billing,
     * users and keys are added or updated and never removed, `must_reset_password` only becomes true, a revoked key
     * stays revoked. Fails, changing nothing, where an id is another workspace's, a user's id or email is another
     * user's, or a key's hash is another key's. Importing the same archive again changes nothing.
     */
    readonly importArchive: (archive: Archive) => Effect.Effect<void, BadArchive | Unavailable>
    /** Stores a key of the workspace; `email`, compared without case, is its owner, who is added when unknown under `newUserId`. */
    readonly addKey: (
      workspace: WorkspaceId,
      owner: { readonly email: string; readonly newUserId: UserId },
      key: NewKey
    ) => Effect.Effect<void, WorkspaceNotFound | Unavailable>
  }
>()("prompt-retrieval/WorkspaceStore") {}
