import type { WorkspaceRevisions } from "../../../../application/cache/WorkspaceRevisions.ts"

/**
 * The channel on which the database reports changes. The payload of a change is the id of a workspace, or
 * `allWorkspaces`.
 */
export const channel = "prompt_retrieval_changes"

/** The payload that reports that all workspaces may have changed. */
export const allWorkspaces = "*"

export const recordChange = (revisions: WorkspaceRevisions, payload: string): void =>
  payload === allWorkspaces ? revisions.invalidateAll() : revisions.invalidate(payload)

/** The prefix of heartbeats. Their payloads report no change. Only the process that sent a heartbeat uses it. */
export const heartbeatPrefix = "heartbeat "
