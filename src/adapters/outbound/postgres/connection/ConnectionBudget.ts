/** How many connections each part of a process may open. */
export interface ConnectionBudget {
  /** Reads of prompts. */
  readonly prompts: number
  /** Key lookups. */
  readonly keys: number
  /** Transactions and writes in the background. */
  readonly transactions: number
  /** The change feed: one connection listens, the other sends heartbeats. */
  readonly changeFeed: number
}

/** The connections of a process without `DATABASE_MAX_CONNECTIONS`. */
export const defaultMaxConnections = 12

/** One connection for each purpose, two for reads of prompts, and two for the change feed. */
export const minMaxConnections = 6

/** Maximum number of connections for transactions: administration runs few at once. */
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
