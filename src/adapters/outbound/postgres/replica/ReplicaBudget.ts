import { defaultMaxConnections, minMaxConnections } from "../connection/ConnectionBudget.ts"

/** How many connections a process with replicas may open. */
export interface ReplicaBudget {
  /** All connections to the primary, which `divideConnections` divides. */
  readonly primary: number
  /** Reads of prompts from the replica in use. */
  readonly prompts: number
  /** Key lookups in the replica in use. */
  readonly keys: number
  /** Queries for positions: one connection to each replica. */
  readonly positions: number
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
 * Divides the connections that a process with replicas may open. The sum of the parts is `max`.
 *
 * @param max at least `findMinMaxConnections(replicas)`
 */
export const divideWithReplicas = (max: number, replicas: number): ReplicaBudget => {
  const shared = max - replicas
  const reads = minReads + Math.floor((shared - minMaxConnections - minReads) / 3)
  const keys = 1 + Math.floor((reads - minReads) / 3)
  return { primary: shared - reads, prompts: reads - keys, keys, positions: replicas }
}
