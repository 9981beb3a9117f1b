import type { WorkspaceRevisions } from "../../../../application/freshness/WorkspaceRevisions.ts"

/** The channel on which the database reports changes. A payload is the id of a workspace, or `allWorkspaces`. */
export const channel = "prompt_retrieval_changes"

/** The payload that means that any workspace may have changed. */
export const allWorkspaces = "*"

/** Records the change that a payload reports. */
export const recordChange = (revisions: WorkspaceRevisions, payload: string): void =>
  payload === allWorkspaces ? revisions.invalidateAll() : revisions.invalidate(payload)

/** The prefix of a heartbeat, which counts only for the change feed that sent it. */
export const heartbeatPrefix = "heartbeat "
