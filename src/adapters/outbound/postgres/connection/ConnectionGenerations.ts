import type { PgConnection } from "@effect/sql-pg/PgConnection"

/**
 * Tells which connections of a pool can be trusted. When one connection is lost, all other connections are often lost
 * too, undetected. Each loss therefore starts a new generation: only connections that were first acquired since then
 * belong to the latest generation.
 */
export class ConnectionGenerations {
  #latest = 0
  readonly #generations = new WeakMap<PgConnection, number>()

  /** Adds a connection without a generation to the latest generation. */
  add(connection: PgConnection): void {
    if (!this.#generations.has(connection)) this.#generations.set(connection, this.#latest)
  }

  /** Returns true if a connection belongs to the latest generation. */
  isLatest(connection: PgConnection): boolean {
    this.add(connection)
    return this.#generations.get(connection) === this.#latest
  }

  /** Records that a connection was lost. */
  recordLoss(connection: PgConnection): void {
    if (this.isLatest(connection)) this.#latest++
  }
}
