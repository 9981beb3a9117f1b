/** The channel on which the database tells of changes: a workspace's id, or that anything may have changed. */
export const channel = "prompt_retrieval_changes"
export const allWorkspaces = "*"

/** How a feed's own heartbeat begins, which it alone counts. */
export const heartbeatPrefix = "heartbeat "
