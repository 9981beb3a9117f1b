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

/** How many connections a process with replicas may open. */
export interface ReplicaBudget {
  /** All connections to the primary, which `divideConnections` divides. */
  readonly primary: number
  /** Reads of prompts from the replica in use. */
  readonly prompts: number
  /** Key lookups in the replica in use. */
  readonly keys: number
}

/** Connections for reads of the replica in use, without `DATABASE_MAX_CONNECTIONS`. */
const defaultReads = 5

/** One connection for prompts and one for keys. */
const minReads = 2

/** Returns the connections of a process without `DATABASE_MAX_CONNECTIONS`. */
export const findDefaultMaxConnections = (replicas: number): number =>
  replicas === 0 ? defaultMaxConnections : defaultMaxConnections + defaultReads + replicas

/** Returns the minimum number of connections of a process: one for each purpose, and two for the change feed. */
export const findMinMaxConnections = (replicas: number): number =>
  replicas === 0 ? minMaxConnections : minMaxConnections + minReads + replicas

/**
 * Divides the connections that a process with replicas may open. Queries for the positions of the replicas use one
 * connection to each. The sum of all parts is `max`.
 *
 * @param max at least `findMinMaxConnections(replicas)`
 */
export const divideWithReplicas = (max: number, replicas: number): ReplicaBudget => {
  const shared = max - replicas
  const reads = minReads + Math.floor((shared - minMaxConnections - minReads) / 3)
  const keys = 1 + Math.floor((reads - minReads) / 3)
  return { primary: shared - reads, prompts: reads - keys, keys }
}
