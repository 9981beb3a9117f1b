/** Maximum number of connections of a process if `DATABASE_MAX_CONNECTIONS` is not set. */
export const defaultMaxConnections = 12

/** The smallest valid maximum: 2 connections for prompts, 1 for keys, 1 for transactions, and 2 for the change feed. */
export const minMaxConnections = 6

/**
 * Divides the connections of a process among its pools: reads of prompts, key lookups, and transactions. Leaves two
 * connections for the change feed, which listens on one and sends heartbeats on the other.
 *
 * @param max at least `minMaxConnections`
 */
export const divideConnections = (max: number) => {
  // Administration runs only a few transactions at the same time.
  const transactions = Math.min(4, 1 + Math.floor((max - minMaxConnections) / 2))
  const reads = max - 2 - transactions
  const keys = Math.floor(reads / 3)
  return { prompts: reads - keys, keys, transactions }
}
