import { randomInt, randomUUID } from "node:crypto"
import { createServer, type Server, type Socket } from "node:net"
import { performance } from "node:perf_hooks"
import type { Database } from "./Database.ts"
import * as Wire from "./WireProtocol.ts"

/** How long a connection waits for the session before its messages are refused, in milliseconds. */
const waitLimit = 3_000
/** How long a connection may hold the session without anything happening, in milliseconds. */
const idleLimit = 2_000
/** How long closing waits for what runs, in milliseconds. */
const closeLimit = 5_000
/** So much of a batch is run before its end has come, and so much is taken from a client ahead of its turn, in bytes. */
const pieceBytes = 1024 * 1024
/** Answers are written in parts of so many bytes; a client that takes them is not idle. */
const writeBytes = 256 * 1024

/** Messages that are run together; `last` ends with the one that `ReadyForQuery` answers. */
interface Piece {
  readonly messages: Buffer
  readonly last: boolean
  readonly arrived: number
}

/** A connection whose wishes for its session the database refuses, with the error that says so. */
class SettingsRefused extends Error {
  readonly response: Buffer
  constructor(response: Buffer) {
    super("settings refused")
    this.response = response
  }
}

/** Who hears of `NOTIFY` on a channel. */
export interface Listener {
  readonly notice: (payload: string) => void
  /** Notices may have been lost: the database had ended and was opened again, or a connection had ended `LISTEN`. */
  readonly gap: () => void
}

const literal = (value: string): string => `E'${value.replace(/[\\']/g, "\\$&")}'`
const identifier = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** What a connection may have left behind: everything that `DISCARD ALL` ends but what the server listens to. */
const reset = [
  "CLOSE ALL",
  "SET SESSION AUTHORIZATION DEFAULT",
  "RESET ALL",
  "DEALLOCATE ALL",
  "SELECT pg_advisory_unlock_all()",
  "DISCARD TEMP",
  "DISCARD SEQUENCES"
]

/** The prepared statement that names the channels that the session listens to. */
const verification = `prompt_retrieval_${randomUUID()}`
const prepareVerification = Buffer.concat([
  Wire.parse("select pg_catalog.pg_listening_channels()", verification),
  Wire.sync
])
const verify = Buffer.concat([Wire.bind(verification), Wire.execute, Wire.sync])

/** Undoes whatever is open, committing nothing of it: a statement that fails, then the end of its transaction. */
const abort = Buffer.concat([Wire.parse("abort the batch"), Wire.sync, Wire.query("ROLLBACK")])

/**
 * Offers the one session of a PGlite to many connections on a Unix socket, in the PostgreSQL wire protocol
 * (DESIGN.md section 9). One connection at a time has the session, from its first message until it is ready for a
 * query outside a transaction; the others wait, first come, first served. When it changes hands it is as new: settings
 * (but those of the startup packet), prepared statements, cursors, temporary tables and advisory locks of a
 * connection last until another connection runs something.
 */
export class SessionServer {
  readonly #open: () => Promise<Database>
  readonly #report: (message: string, cause: unknown) => void
  readonly #server: Server
  readonly #connections = new Set<Connection>()
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #waiting: Array<{ readonly grant: (granted: boolean) => void; readonly timer: NodeJS.Timeout }> =
    []
  #database: Promise<Database> | undefined
  #taken = false
  /** Whose state the session has; nobody's when it must be made as new in any case. */
  #state: Connection | undefined
  #nextId = 1
  readonly greeting: ReadonlyArray<Buffer>

  private constructor(
    database: Database,
    open: () => Promise<Database>,
    report: (message: string, cause: unknown) => void
  ) {
    this.#database = Promise.resolve(database)
    this.greeting = database.greeting
    this.#open = open
    this.#report = report
    this.#server = createServer({ allowHalfOpen: true }, (socket) => {
      const connection = new Connection(this, socket, this.#nextId++)
      this.#connections.add(connection)
      socket.once("close", () => this.#connections.delete(connection))
    })
  }

  /**
   * Opens the database and listens on `path`, which must be free. `open` is called again whenever the database has
   * ended, and `report` told of that.
   */
  static async listen(
    path: string,
    open: () => Promise<Database>,
    report: (message: string, cause: unknown) => void
  ): Promise<SessionServer> {
    const database = await open()
    const server = new SessionServer(database, open, report)
    try {
      await new Promise<void>((resolve, reject) => {
        // Later errors are of single connections that could not be accepted.
        server.#server.on("error", reject)
        server.#server.listen(path, resolve)
      })
    } catch (error) {
      await database.close()
      throw error
    }
    return server
  }

  /** Hears of every `NOTIFY` on a channel whose transaction begins after this; gives what ends it. */
  listenTo(channel: string, listener: Listener): () => void {
    const listeners = this.#listeners.get(channel) ?? new Set()
    this.#listeners.set(channel, listeners.add(listener))
    this.#state = undefined
    return () => {
      listeners.delete(listener)
    }
  }

  /** Waits for the session until `deadline` (of `performance.now()`); gives whether the caller has it now. */
  acquire(deadline: number): Promise<boolean> {
    if (!this.#taken) {
      this.#taken = true
      return Promise.resolve(true)
    }
    return new Promise((grant) => {
      const giveUp = () => {
        this.#waiting.splice(this.#waiting.indexOf(waiter), 1)
        grant(false)
      }
      const waiter = { grant, timer: setTimeout(giveUp, Math.max(0, deadline - performance.now())) }
      this.#waiting.push(waiter)
    })
  }

  /** Gives the session to the next that waits. */
  release(): void {
    const next = this.#waiting.shift()
    this.#taken = next !== undefined
    clearTimeout(next?.timer)
    next?.grant(true)
  }

  /** Runs messages of the connection that has the session. Rejects when it can't go on; nothing is open then. */
  async execute(connection: Connection, messages: Buffer): Promise<Wire.Answer> {
    try {
      this.#database ??= this.#open()
      const database = await this.#database
      if (this.#state !== connection) {
        this.#state = undefined
        await this.#renew(database, connection)
        this.#state = connection
      }
      const answer = await this.#run(database, messages)
      await this.#keepListening(database, answer)
      return answer
    } catch (error) {
      if (!(error instanceof SettingsRefused)) this.#forget(error)
      throw error
    }
  }

  /** Rolls back what the connection that has the session left open in it. */
  async abort(): Promise<void> {
    if (this.#database === undefined) return
    try {
      await this.#run(await this.#database, abort)
    } catch (error) {
      this.#forget(error)
    }
  }

  async #renew(database: Database, connection: Connection): Promise<void> {
    const renewal = Wire.query([...reset, ...this.#listen()].join(";"))
    await this.#run(
      database,
      this.#listeners.size === 0 ? renewal : Buffer.concat([renewal, prepareVerification])
    )
    if (connection.settings.size === 0) return
    const set = [...connection.settings].map(
      ([name, value]) => `set_config(${literal(name)}, ${literal(value)}, false)`
    )
    const { error } = await this.#run(database, Wire.query(`SELECT ${set.join(", ")}`))
    if (error !== undefined) throw new SettingsRefused(error)
  }

  #listen(): ReadonlyArray<string> {
    return [...this.#listeners.keys()].map((channel) => `LISTEN ${identifier(channel)}`)
  }

  /**
   * Restores `LISTEN` if a connection's statements have ended it, by whatever means, and reports a gap before the
   * connection is answered. `UNLISTEN` takes effect on commit, so the session is verified whenever it is idle. A commit
   * inside a batch that ends in another transaction cannot be verified, so it always counts as a gap.
   */
  async #keepListening(database: Database, { status, mayCommit }: Wire.Answer): Promise<void> {
    if (this.#listeners.size === 0) return
    if (status !== "I") {
      if (mayCommit) this.#reportGap()
      return
    }
    const channels = new Set(Wire.firstColumn((await this.#run(database, verify)).bytes))
    if ([...this.#listeners.keys()].every((channel) => channels.has(channel))) return
    // Fails where the prepared statement is still there, which is fine.
    await this.#run(database, Buffer.concat([Wire.query(this.#listen().join(";")), prepareVerification]))
    this.#reportGap()
  }

  async #run(database: Database, messages: Buffer): Promise<Wire.Answer> {
    const answer = Wire.readAnswer(await database.execute(messages))
    for (const { channel, payload } of answer.notices)
      for (const listener of this.#listeners.get(channel) ?? [])
        queueMicrotask(() => listener.notice(payload))
    return answer
  }

  /** The database has ended: whoever comes next opens it again. What it held in memory is not worth closing. */
  #forget(cause: unknown): void {
    this.#database = undefined
    this.#state = undefined
    this.#report("The embedded database has ended and is opened again", cause)
    this.#reportGap()
  }

  #reportGap(): void {
    for (const listeners of this.#listeners.values())
      for (const listener of listeners) queueMicrotask(() => listener.gap())
  }

  /** Takes no more connections, lets those finish that run something, and closes the database. */
  async close(): Promise<void> {
    const closed = new Promise<void>((resolve) => {
      this.#server.close(() => resolve())
    })
    for (const connection of this.#connections) connection.finish()
    const timer = setTimeout(() => {
      for (const connection of this.#connections) connection.destroy()
    }, closeLimit)
    await closed
    clearTimeout(timer)
    // Whoever was in a transaction has left, but may still be rolling back.
    await this.acquire(performance.now() + closeLimit)
    await (await this.#database?.catch(() => undefined))?.close()
  }
}

const { types } = Wire

/** A client's connection: takes its messages apart, runs them in order, and holds the session while it must. */
class Connection {
  readonly #server: SessionServer
  readonly #socket: Socket
  readonly #id: number
  readonly #reader = new Wire.MessageReader()
  #settings: ReadonlyMap<string, string> = new Map()
  /** Messages that wait for the end of their batch. */
  #batch: Array<Buffer> = []
  #batchBytes = 0
  readonly #pieces: Array<Piece> = []
  #queuedBytes = 0
  #working = false
  #holding = false
  /** The rest of a refused batch is left out. */
  #skipping = false
  /** The client takes part no more: what has come is run, what is open then is rolled back. */
  #over = false
  /** The server closes: the connection ends once it doesn't hold the session. */
  #closing = false
  #idle: NodeJS.Timeout | undefined

  constructor(server: SessionServer, socket: Socket, id: number) {
    this.#server = server
    this.#socket = socket
    this.#id = id
    socket.on("data", (chunk) => this.#receive(chunk))
    socket.on("end", () => this.#leave())
    socket.on("close", () => this.#leave())
    // `close` follows.
    socket.on("error", () => {})
  }

  /** The run-time parameters that the client's startup packet asked for. */
  get settings(): ReadonlyMap<string, string> {
    return this.#settings
  }

  finish(): void {
    this.#closing = true
    void this.#settle()
  }

  destroy(): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    if (this.#over) return
    try {
      for (const message of this.#reader.push(chunk)) {
        if (message.type === 0) this.#start(message.frame)
        else this.#take(message)
      }
    } catch (error) {
      if (!(error instanceof Wire.ProtocolViolation)) throw error
      this.#fail(Wire.errorResponse("FATAL", "08P01", error.message))
    }
    void this.#work()
  }

  #start(packet: Buffer): void {
    const startup = Wire.parseStartup(packet)
    switch (startup._tag) {
      case "Encryption":
        this.#socket.write(Wire.noEncryption)
        return
      case "Cancel":
        this.#socket.destroy()
        return
      case "Unsupported":
        this.#fail(Wire.errorResponse("FATAL", "0A000", "unsupported frontend protocol"))
        return
      case "Session":
        this.#settings = startup.settings
        this.#socket.write(
          Buffer.concat([
            ...(startup.minor > 0 ? [Wire.protocolVersion3] : []),
            ...this.#server.greeting,
            ...reportedAsAsked.flatMap((name) => {
              const value = startup.settings.get(name)
              return value === undefined ? [] : [Wire.parameterStatus(name, value)]
            }),
            Wire.keyData(this.#id, randomInt(2 ** 31)),
            Wire.ready
          ])
        )
    }
  }

  #take({ type, frame }: Wire.Message): void {
    switch (type) {
      case types.terminate:
        this.#leave()
        return
      case types.copyData:
      case types.copyDone:
      case types.copyFail:
        // Rows for a COPY that has been refused.
        return
      case types.parse:
      case types.bind:
      case types.describe:
      case types.close:
        this.#add(frame)
        break
      case types.execute:
        this.#add(frame, Wire.copyFail)
        break
      case types.flush:
        this.#add(frame)
        this.#cut(false)
        break
      case types.query:
        this.#add(frame, Wire.copyFail)
        this.#cut(true)
        break
      case types.sync:
      case types.functionCall:
        this.#add(frame)
        this.#cut(true)
        break
      default:
        throw new Wire.ProtocolViolation("unexpected message")
    }
    if (this.#batchBytes >= pieceBytes) this.#cut(false)
  }

  /**
   * PGlite ends when a COPY FROM STDIN finds no rows. Whatever may begin one is followed by the message that makes it
   * fail; after anything else the database ignores that message, as the protocol wants it to.
   */
  #add(...messages: ReadonlyArray<Buffer>): void {
    this.#batch.push(...messages)
    for (const message of messages) this.#batchBytes += message.length
  }

  #cut(last: boolean): void {
    this.#pieces.push({ messages: Buffer.concat(this.#batch), last, arrived: performance.now() })
    this.#queuedBytes += this.#batchBytes
    this.#batch = []
    this.#batchBytes = 0
    if (this.#queuedBytes >= pieceBytes) this.#socket.pause()
  }

  async #work(): Promise<void> {
    if (this.#working) return
    this.#working = true
    for (let piece = this.#pieces.shift(); piece !== undefined; piece = this.#pieces.shift()) {
      this.#queuedBytes -= piece.messages.length
      if (this.#queuedBytes < pieceBytes) this.#socket.resume()
      await this.#run(piece)
    }
    this.#working = false
    await this.#settle()
  }

  async #run(piece: Piece): Promise<void> {
    if (this.#skipping) {
      this.#skipping = !piece.last
      if (piece.last) await this.#send(Wire.ready)
      return
    }
    if (!this.#holding && !(await this.#server.acquire(piece.arrived + waitLimit))) {
      this.#skipping = !piece.last
      await this.#send(piece.last ? Buffer.concat([waitedTooLong, Wire.ready]) : waitedTooLong)
      return
    }
    this.#holding = true
    clearTimeout(this.#idle)
    let answer: Wire.Answer
    try {
      answer = await this.#server.execute(this, piece.messages)
    } catch (error) {
      this.#letGo()
      this.#fail(error instanceof SettingsRefused ? error.response : databaseEnded)
      return
    }
    if (answer.status === "I") this.#letGo()
    await this.#send(answer.bytes)
  }

  #letGo(): void {
    clearTimeout(this.#idle)
    this.#holding = false
    this.#server.release()
  }

  async #send(bytes: Buffer): Promise<void> {
    let start = 0
    do {
      if (this.#holding) this.#watch()
      const part = bytes.subarray(start, start + writeBytes)
      await new Promise<void>((resolve) => {
        this.#socket.write(part, () => resolve())
      })
      start += writeBytes
    } while (start < bytes.length && !this.#socket.destroyed)
  }

  #watch(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => {
      this.#fail(idleTooLong)
      // The client doesn't take its answer.
      if (this.#working) this.#socket.destroy()
    }, idleLimit)
  }

  /** Ends the connection with an error. */
  #fail(response: Buffer): void {
    this.#socket.write(response)
    this.#pieces.length = 0
    this.#leave()
  }

  #leave(): void {
    this.#over = true
    void this.#settle()
  }

  async #settle(): Promise<void> {
    if (this.#working || this.#pieces.length > 0) return
    if (this.#over && this.#holding) {
      this.#holding = false
      clearTimeout(this.#idle)
      await this.#server.abort()
      this.#server.release()
    }
    if (this.#holding || !(this.#over || this.#closing)) return
    if (!this.#over) this.#socket.write(shuttingDown)
    this.#over = true
    this.#socket.destroySoon()
  }
}

/** Parameters that clients look at to learn what became of their wish; any wish for them is granted as it is. */
const reportedAsAsked = ["client_encoding", "application_name"]

const waitedTooLong = Wire.errorResponse(
  "ERROR",
  "57014",
  "another connection holds the embedded database's session"
)
const idleTooLong = Wire.errorResponse(
  "FATAL",
  "25P03",
  "terminating connection: idle in a transaction for 2 s"
)
const databaseEnded = Wire.errorResponse(
  "FATAL",
  "57P02",
  "terminating connection: the embedded database has ended"
)
const shuttingDown = Wire.errorResponse("FATAL", "57P01", "terminating connection: the server shuts down")
