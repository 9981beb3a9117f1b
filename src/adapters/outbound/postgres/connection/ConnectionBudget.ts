/** How many connections each part of a process may open. */
export interface ConnectionBudget {
  /** Connections for reads of prompts. */
  readonly prompts: number
  /** Connections for key lookups. */
  readonly keys: number
  /** Connections for transactions, and for writes in the background. */
  readonly transactions: number
  /** Connections of the change feed: one listens, and the other sends heartbeats. */
  readonly changeFeed: number
}

/** Maximum number of connections of a process if `DATABASE_MAX_CONNECTIONS` is not set. */
export const defaultMaxConnections = 12

/**
 * The smallest value of `DATABASE_MAX_CONNECTIONS`: two connections for reads of prompts, one for key lookups, one for
 * transactions, and two for the change feed.
 */
export const minMaxConnections = 6

/** Maximum number of connections for transactions. Administration runs only a few transactions at the same time. */
const maxTransactions = 4

/**
 * Divides the connections that a process may open. The sum of the parts is `max`.
 *
 * @param max at least `minMaxConnections`
 */
export const divideConnections = (max: number): ConnectionBudget => {
  const spare = max - minMaxConnections
  const transactions = Math.min(maxTransactions, 1 + Math.floor(spare / 2))
  const spareReads = spare - (transactions - 1)
  const keys = 1 + Math.floor(spareReads / 3)
  return {
    prompts: 2 + spareReads - (keys - 1),
    keys,
    transactions,
    changeFeed: 2
  }
}
