import { performance } from "node:perf_hooks"
import { type NotificationListener, NotificationListeners } from "./NotificationListeners.ts"
import type { PgliteSession } from "./PgliteSession.ts"
import { SessionLock } from "./SessionLock.ts"
import { buildReset, buildResubscription, buildSettings, queryChannels, rollback } from "./SessionReset.ts"
import * as Wire from "./WireProtocol.ts"

/** Opens the database, or opens it again after it failed. */
export type OpenDatabase = () => Promise<PgliteSession>

/** Reports a failure that no caller receives. */
export type ReportFailure = (message: string, cause: unknown) => void

/** A client of the session. */
export interface SessionClient {
  /** The run-time parameters of its startup packet. */
  readonly settings: ReadonlyMap<string, string>
}

/** The database rejected a client's run-time parameters. */
export class InvalidSettings extends Error {
  /** The database's `ErrorResponse`. */
  readonly response: Buffer

  constructor(response: Buffer) {
    super("invalid settings")
    this.response = response
  }
}

/**
 * Shares the one session of a PGlite among clients, one at a time (`acquire`, `release`). When another client runs
 * messages, the session is first reset: settings, prepared statements, cursors, temporary tables and advisory locks
 * of a client last until another client uses the session. A database that failed is opened again for the next
 * messages.
 */
export class SharedSession {
  /** The messages that greet a client after its startup packet. */
  readonly greeting: ReadonlyArray<Buffer>
  readonly #open: OpenDatabase
  readonly #report: ReportFailure
  readonly #lock = new SessionLock()
  readonly #listeners = new NotificationListeners()
  #database: Promise<PgliteSession> | undefined
  /** The client whose state the session has; `undefined` forces a reset. */
  #sessionOwner: SessionClient | undefined

  constructor(database: PgliteSession, open: OpenDatabase, report: ReportFailure) {
    this.#database = Promise.resolve(database)
    this.greeting = database.greeting
    this.#open = open
    this.#report = report
  }

  /** Calls the listener for every `NOTIFY` on a channel from now on; returns the function that removes it. */
  listenTo(channel: string, listener: NotificationListener): () => void {
    this.#sessionOwner = undefined
    return this.#listeners.add(channel, listener)
  }

  /** Waits for the session until `deadline` (of `performance.now()`); resolves with whether the caller has it now. */
  acquire(deadline: number): Promise<boolean> {
    return this.#lock.acquire(deadline)
  }

  /** Passes the session to the next client that waits for it. */
  release(): void {
    this.#lock.release()
  }

  /**
   * Runs messages of the client that holds the session. Rejects with `InvalidSettings`, or with the reason why the
   * database failed; no transaction is open then.
   */
  async execute(client: SessionClient, messages: Buffer): Promise<Wire.BackendResponse> {
    try {
      this.#database ??= this.#open()
      const database = await this.#database
      if (this.#sessionOwner !== client) {
        this.#sessionOwner = undefined
        await this.#resetSession(database, client)
        this.#sessionOwner = client
      }
      const response = await this.#run(database, messages)
      await this.#keepListening(database, response)
      return response
    } catch (error) {
      if (!(error instanceof InvalidSettings)) this.#dropDatabase(error)
      throw error
    }
  }

  /** Rolls back what the client that holds the session left open. */
  async rollback(): Promise<void> {
    if (this.#database === undefined) return
    try {
      await this.#run(await this.#database, rollback)
    } catch (error) {
      this.#dropDatabase(error)
    }
  }

  /** Closes the database once the session is free, or after `limit` milliseconds. */
  async close(limit: number): Promise<void> {
    await this.acquire(performance.now() + limit)
    await (await this.#database?.catch(() => undefined))?.close()
  }

  async #resetSession(database: PgliteSession, client: SessionClient): Promise<void> {
    await this.#run(database, buildReset(this.#listeners.channels))
    const settings = buildSettings(client.settings)
    if (settings === undefined) return
    const { error } = await this.#run(database, settings)
    if (error !== undefined) throw new InvalidSettings(error)
  }

  /**
   * Subscribes the session again if a client's statements ended `LISTEN` by any means, and reports a gap before the
   * client gets its response. `UNLISTEN` takes effect on commit, so the session is verified whenever it is idle. A
   * commit inside a batch that ends in another transaction cannot be verified, so it always counts as a gap.
   */
  async #keepListening(database: PgliteSession, { status, mayCommit }: Wire.BackendResponse): Promise<void> {
    if (this.#listeners.channels.length === 0) return
    if (status !== "I") {
      if (mayCommit) this.#listeners.reportGap()
      return
    }
    const actual = new Set(Wire.parseFirstColumn((await this.#run(database, queryChannels)).bytes))
    const expected = this.#listeners.channels
    if (expected.every((channel) => actual.has(channel))) return
    await this.#run(database, buildResubscription(expected))
    this.#listeners.reportGap()
  }

  async #run(database: PgliteSession, messages: Buffer): Promise<Wire.BackendResponse> {
    const response = Wire.parseBackendResponse(await database.execute(messages))
    for (const notification of response.notifications) this.#listeners.dispatch(notification)
    return response
  }

  /** Drops a database that failed, without closing it: its memory may be corrupt. The next messages open it again. */
  #dropDatabase(cause: unknown): void {
    this.#database = undefined
    this.#sessionOwner = undefined
    this.#report("Embedded database failed; the next query opens it again", cause)
    this.#listeners.reportGap()
  }
}
