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

/** Maximum number of connections of a process without replicas if `DATABASE_MAX_CONNECTIONS` is not set. */
export const defaultMaxConnections = 12

/**
 * The smallest value of `DATABASE_MAX_CONNECTIONS` without replicas: two connections for reads of prompts, one for key
 * lookups, one for transactions, and two for the change feed.
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

/** How many connections a process with replicas may open. */
export interface ReplicaBudget {
  /** All connections to the primary, which `divideConnections` divides. */
  readonly primary: number
  /** Connections for reads of prompts from the replica in use. */
  readonly prompts: number
  /** Connections for key lookups from the replica in use. */
  readonly keys: number
}

/** Number of connections for reads from the replica in use if `DATABASE_MAX_CONNECTIONS` is not set. */
const defaultReads = 5

/** The smallest number of connections for reads from the replica in use: one for prompts and one for keys. */
const minReads = 2

/**
 * Returns the maximum number of connections of a process with this number of replicas if `DATABASE_MAX_CONNECTIONS` is
 * not set.
 */
export const findDefaultMaxConnections = (replicas: number): number =>
  replicas === 0 ? defaultMaxConnections : defaultMaxConnections + defaultReads + replicas

/** Returns the smallest value of `DATABASE_MAX_CONNECTIONS` for a process with this number of replicas. */
export const findMinMaxConnections = (replicas: number): number =>
  replicas === 0 ? minMaxConnections : minMaxConnections + minReads + replicas

/**
 * Divides the connections that a process with replicas may open. One more connection leads to each replica, for queries
 * of the replica's position. The sum of all connections is `max`.
 *
 * @param max at least `findMinMaxConnections(replicas)`
 */
export const divideWithReplicas = (max: number, replicas: number): ReplicaBudget => {
  const shared = max - replicas
  const reads = minReads + Math.floor((shared - minMaxConnections - minReads) / 3)
  const keys = 1 + Math.floor((reads - minReads) / 3)
  return { primary: shared - reads, prompts: reads - keys, keys }
}
