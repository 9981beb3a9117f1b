import { randomInt } from "node:crypto"
import type { Socket } from "node:net"
import { performance } from "node:perf_hooks"
import { InvalidSettings, type SessionClient, type SharedSession } from "./SharedSession.ts"
import * as Wire from "./WireProtocol.ts"

const { messageTypes } = Wire

/** How long a connection waits for the session before its messages fail, in milliseconds. */
const acquireTimeoutMs = 3_000
/** How long a connection may hold the session without any activity, in milliseconds. */
const idleTimeoutMs = 2_000
/** A batch runs in parts of about this size, and a connection reads ahead at most about this much, in bytes. */
const maxRunBytes = 1024 * 1024
/** Responses are written in parts of this size, in bytes; a client that accepts them is not idle. */
const writeBytes = 256 * 1024

/** Messages that run together. */
interface MessageRun {
  readonly messages: Buffer
  /** True if the run ends the batch: `ReadyForQuery` responds to its last message. */
  readonly endsBatch: boolean
  /** When the run was complete, by `performance.now()`. */
  readonly receivedAt: number
}

/** A client's connection: parses its messages, runs them in order, and holds the session during transactions. */
export class SessionConnection implements SessionClient {
  readonly #session: SharedSession
  readonly #socket: Socket
  readonly #id: number
  readonly #reader = new Wire.MessageReader()
  #settings: ReadonlyMap<string, string> = new Map()
  /** Messages that are not part of a run yet. */
  #pending: Array<Buffer> = []
  #pendingBytes = 0
  readonly #queue: Array<MessageRun> = []
  #queuedBytes = 0
  #isRunning = false
  #hasSession = false
  /** True while the runs of a batch that failed to get the session are skipped. */
  #isSkipping = false
  /** True once the client sends nothing more: its queue still runs, then an open transaction is rolled back. */
  #isClosed = false
  /** True once the server shuts down: the connection closes as soon as it does not hold the session. */
  #isShuttingDown = false
  #idleTimer: NodeJS.Timeout | undefined

  constructor(session: SharedSession, socket: Socket, id: number) {
    this.#session = session
    this.#socket = socket
    this.#id = id
    socket.on("data", (chunk) => this.#receive(chunk))
    socket.on("end", () => this.#disconnect())
    socket.on("close", () => this.#disconnect())
    // Without a listener an error would end the process. `close` follows every error.
    socket.on("error", () => {})
  }

  /** The run-time parameters of the client's startup packet. */
  get settings(): ReadonlyMap<string, string> {
    return this.#settings
  }

  /** Closes the connection once it does not hold the session. */
  shutDown(): void {
    this.#isShuttingDown = true
    void this.#maybeClose()
  }

  /** Closes the connection at once. */
  destroy(): void {
    this.#socket.destroy()
  }

  #receive(chunk: Buffer): void {
    if (this.#isClosed) return
    try {
      for (const message of this.#reader.push(chunk)) {
        if (message.type === 0) this.#handleStartup(message.frame)
        else this.#handleMessage(message)
      }
    } catch (error) {
      if (!(error instanceof Wire.ProtocolViolation)) throw error
      this.#fail(Wire.buildErrorResponse("FATAL", "08P01", error.message))
    }
    void this.#runQueue()
  }

  #handleStartup(packet: Buffer): void {
    const startup = Wire.parseStartup(packet)
    switch (startup._tag) {
      case "Encryption":
        this.#socket.write(Wire.noEncryptionReply)
        return
      case "Cancel":
        this.#socket.destroy()
        return
      case "Unsupported":
        this.#fail(Wire.buildErrorResponse("FATAL", "0A000", "unsupported frontend protocol"))
        return
      case "Session":
        this.#settings = startup.settings
        this.#socket.write(this.#buildGreeting(startup))
    }
  }

  #buildGreeting({ minor, settings }: Extract<Wire.Startup, { readonly _tag: "Session" }>): Buffer {
    return Buffer.concat([
      ...(minor > 0 ? [Wire.protocolVersionMessage] : []),
      ...this.#session.greeting,
      ...confirmedSettings.flatMap((name) => {
        const value = settings.get(name)
        return value === undefined ? [] : [Wire.buildParameterStatus(name, value)]
      }),
      Wire.buildKeyData(this.#id, randomInt(2 ** 31)),
      Wire.readyMessage
    ])
  }

  #handleMessage({ type, frame }: Wire.Message): void {
    switch (type) {
      case messageTypes.terminate:
        this.#disconnect()
        return
      case messageTypes.copyData:
      case messageTypes.copyDone:
      case messageTypes.copyFail:
        // Rows for a COPY that was rejected.
        return
      case messageTypes.parse:
      case messageTypes.bind:
      case messageTypes.describe:
      case messageTypes.close:
        this.#add(frame)
        break
      case messageTypes.execute:
        this.#add(frame, Wire.copyFailMessage)
        break
      case messageTypes.flush:
        this.#add(frame)
        this.#flushRun(false)
        break
      case messageTypes.query:
        this.#add(frame, Wire.copyFailMessage)
        this.#flushRun(true)
        break
      case messageTypes.sync:
      case messageTypes.functionCall:
        this.#add(frame)
        this.#flushRun(true)
        break
      default:
        throw new Wire.ProtocolViolation("unexpected message")
    }
    if (this.#pendingBytes >= maxRunBytes) this.#flushRun(false)
  }

  /**
   * Adds messages to the current run. PGlite fails when a `COPY FROM STDIN` finds no rows, so every message that
   * may start one is followed by `CopyFail`, which the database ignores at any other time.
   */
  #add(...messages: ReadonlyArray<Buffer>): void {
    this.#pending.push(...messages)
    for (const message of messages) this.#pendingBytes += message.length
  }

  #flushRun(endsBatch: boolean): void {
    this.#queue.push({ messages: Buffer.concat(this.#pending), endsBatch, receivedAt: performance.now() })
    this.#queuedBytes += this.#pendingBytes
    this.#pending = []
    this.#pendingBytes = 0
    if (this.#queuedBytes >= maxRunBytes) this.#socket.pause()
  }

  async #runQueue(): Promise<void> {
    if (this.#isRunning) return
    this.#isRunning = true
    for (let run = this.#queue.shift(); run !== undefined; run = this.#queue.shift()) {
      this.#queuedBytes -= run.messages.length
      if (this.#queuedBytes < maxRunBytes) this.#socket.resume()
      await this.#execute(run)
    }
    this.#isRunning = false
    await this.#maybeClose()
  }

  async #execute({ messages, endsBatch, receivedAt }: MessageRun): Promise<void> {
    if (this.#isSkipping) {
      this.#isSkipping = !endsBatch
      if (endsBatch) await this.#send(Wire.readyMessage)
      return
    }
    if (!this.#hasSession && !(await this.#session.acquire(receivedAt + acquireTimeoutMs))) {
      this.#isSkipping = !endsBatch
      await this.#send(
        endsBatch ? Buffer.concat([acquireTimeoutError, Wire.readyMessage]) : acquireTimeoutError
      )
      return
    }
    this.#hasSession = true
    clearTimeout(this.#idleTimer)
    let response: Wire.BackendResponse
    try {
      response = await this.#session.execute(this, messages)
    } catch (error) {
      this.#releaseSession()
      this.#fail(error instanceof InvalidSettings ? error.response : databaseFailedError)
      return
    }
    if (response.status === "I") this.#releaseSession()
    await this.#send(response.bytes)
  }

  #releaseSession(): void {
    clearTimeout(this.#idleTimer)
    this.#hasSession = false
    this.#session.release()
  }

  async #send(bytes: Buffer): Promise<void> {
    let start = 0
    do {
      if (this.#hasSession) this.#restartIdleTimer()
      const part = bytes.subarray(start, start + writeBytes)
      await new Promise<void>((resolve) => {
        this.#socket.write(part, () => resolve())
      })
      start += writeBytes
    } while (start < bytes.length && !this.#socket.destroyed)
  }

  #restartIdleTimer(): void {
    clearTimeout(this.#idleTimer)
    this.#idleTimer = setTimeout(() => {
      this.#fail(idleTimeoutError)
      // A write is in progress: the client does not read its response.
      if (this.#isRunning) this.#socket.destroy()
    }, idleTimeoutMs)
  }

  /** Sends a fatal error and closes the connection. */
  #fail(response: Buffer): void {
    this.#socket.write(response)
    this.#queue.length = 0
    this.#disconnect()
  }

  #disconnect(): void {
    this.#isClosed = true
    void this.#maybeClose()
  }

  /** Closes the socket if nothing is left to run and either side wants to close; rolls back an open transaction first. */
  async #maybeClose(): Promise<void> {
    if (this.#isRunning || this.#queue.length > 0) return
    if (this.#isClosed && this.#hasSession) {
      this.#hasSession = false
      clearTimeout(this.#idleTimer)
      await this.#session.rollback()
      this.#session.release()
    }
    if (this.#hasSession || !(this.#isClosed || this.#isShuttingDown)) return
    if (!this.#isClosed) this.#socket.write(shutdownError)
    this.#isClosed = true
    this.#socket.destroySoon()
  }
}

/** Settings that clients expect the server to confirm; the server accepts any value of them. */
const confirmedSettings = ["client_encoding", "application_name"]

const acquireTimeoutError = Wire.buildErrorResponse(
  "ERROR",
  "57014",
  "another connection holds the embedded database's session"
)
const idleTimeoutError = Wire.buildErrorResponse(
  "FATAL",
  "25P03",
  "terminating connection: idle in a transaction for 2 s"
)
const databaseFailedError = Wire.buildErrorResponse(
  "FATAL",
  "57P02",
  "terminating connection: the embedded database has ended"
)
const shutdownError = Wire.buildErrorResponse(
  "FATAL",
  "57P01",
  "terminating connection: the server shuts down"
)
