import type { PgConnection } from "@effect/sql-pg/PgConnection"

/**
 * Decides which connections of a pool can be trusted after a connection was lost. When one connection is lost, the
 * other connections are often lost too, but the pool does not know this yet. The loss of a connection of the latest
 * generation therefore starts a new generation, which contains only connections that are first acquired after the loss.
 */
export class ConnectionGenerations {
  #latest = 0
  readonly #generations = new WeakMap<PgConnection, number>()

  /** Adds a connection that has no generation yet to the latest generation. */
  add(connection: PgConnection): void {
    if (!this.#generations.has(connection)) this.#generations.set(connection, this.#latest)
  }

  /** Returns true if a connection belongs to the latest generation. Adds the connection if it has no generation yet. */
  isLatest(connection: PgConnection): boolean {
    this.add(connection)
    return this.#generations.get(connection) === this.#latest
  }

  /** Starts a new generation if the lost connection belongs to the latest generation. */
  recordLoss(connection: PgConnection): void {
    if (this.isLatest(connection)) this.#latest++
  }
}
