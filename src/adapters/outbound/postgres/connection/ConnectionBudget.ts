/** Maximum number of connections of a process if `DATABASE_MAX_CONNECTIONS` is not set. */
export const defaultMaxConnections = 12

/**
 * The smallest value of `DATABASE_MAX_CONNECTIONS`: two connections for reads of prompts, one for key lookups, one for
 * transactions, and two for the change feed.
 */
export const minMaxConnections = 6

/** The change feed listens on one connection and sends heartbeats on another connection. */
const changeFeedConnections = 2

/** Maximum number of connections for transactions. Administration runs only a few transactions at the same time. */
const maxTransactions = 4

/**
 * Divides the connections that a process may open among its pools: reads of prompts, key lookups, and transactions.
 * Leaves two connections for the change feed.
 *
 * @param max at least `minMaxConnections`
 */
export const divideConnections = (max: number) => {
  const transactions = Math.min(maxTransactions, 1 + Math.floor((max - minMaxConnections) / 2))
  const reads = max - changeFeedConnections - transactions
  const keys = Math.floor(reads / 3)
  return { prompts: reads - keys, keys, transactions }
}
