/** The parts of the PostgreSQL wire protocol, version 3, that the session server needs: pure functions over bytes. */

/** A client's message: its type as a character code, 0 for a startup packet, and its whole frame. */
export interface Message {
  readonly type: number
  readonly frame: Buffer
}

/** A client broke the protocol; its connection cannot continue. */
export class ProtocolViolation extends Error {}

/** The largest message that a client may send, in bytes. */
export const maxMessageBytes = 64 * 1024 * 1024
const maxStartupBytes = 10_000

const sslRequest = 80877103
const gssRequest = 80877104
const cancelRequest = 80877102

const code = (character: string): number => character.charCodeAt(0)

/** Splits the bytes of a client into messages, in whatever chunks they arrive. */
export class MessageReader {
  #chunks: Array<Buffer> = []
  #bytes = 0
  #neededBytes = 0
  #started = false

  /** Adds a chunk and returns the messages that it completes. Throws `ProtocolViolation`. */
  push(chunk: Buffer): Array<Message> {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    // Joining the chunks of a large message only once, when all have arrived, keeps the cost linear.
    if (this.#bytes < this.#neededBytes) return []
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks)
    const messages: Array<Message> = []
    let start = 0
    for (;;) {
      const header = this.#started ? 5 : 4
      this.#neededBytes = header
      if (bytes.length - start < header) break
      this.#neededBytes = this.#parseFrameBytes(bytes.readUInt32BE(start + header - 4))
      if (bytes.length - start < this.#neededBytes) break
      const frame = bytes.subarray(start, start + this.#neededBytes)
      messages.push({ type: this.#started ? frame.readUInt8(0) : 0, frame })
      this.#started ||= endsStartup(frame)
      start += this.#neededBytes
    }
    this.#chunks = start === bytes.length ? [] : [bytes.subarray(start)]
    this.#bytes = bytes.length - start
    return messages
  }

  #parseFrameBytes(length: number): number {
    if (length < (this.#started ? 4 : 8)) throw new ProtocolViolation("invalid message length")
    if (length > (this.#started ? maxMessageBytes : maxStartupBytes))
      throw new ProtocolViolation("message too large")
    return this.#started ? length + 1 : length
  }
}

const endsStartup = (frame: Buffer): boolean => {
  const request = frame.readInt32BE(4)
  return request !== sslRequest && request !== gssRequest
}

/** A startup packet: a request for encryption, for a cancellation or for a session with some run-time parameters. */
export type Startup =
  | { readonly _tag: "Encryption" }
  | { readonly _tag: "Cancel" }
  | { readonly _tag: "Unsupported" }
  | { readonly _tag: "Session"; readonly minor: number; readonly settings: ReadonlyMap<string, string> }

const optionPattern = /-c\s*([\w.]+)=((?:\\.|\S)*)/g

/** Parses a startup packet. Settings come from parameters and from `-c` flags in `options`. */
export const parseStartup = (frame: Buffer): Startup => {
  const request = frame.readInt32BE(4)
  if (request === sslRequest || request === gssRequest) return { _tag: "Encryption" }
  if (request === cancelRequest) return { _tag: "Cancel" }
  if (request >> 16 !== 3) return { _tag: "Unsupported" }
  const words = frame.toString("utf8", 8).split("\0")
  const settings = new Map<string, string>()
  for (let i = 0; ; i += 2) {
    const name = words[i]?.toLowerCase() ?? ""
    const value = words[i + 1]
    if (name === "" || value === undefined) break
    if (name === "options") {
      for (const [, key = "", text = ""] of value.matchAll(optionPattern))
        settings.set(key, text.replace(/\\(.)/g, "$1"))
    } else if (!nonSettings.has(name) && !name.startsWith("_pq_.")) settings.set(name, value)
  }
  return { _tag: "Session", minor: request & 0xffff, settings }
}

/** Startup parameters that are not run-time parameters. The server has one user and one database and ignores the names. */
const nonSettings = new Set(["user", "database", "replication"])

const buildFrame = (type: string, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const head = Buffer.alloc(5)
  const body = Buffer.concat(parts)
  head.write(type, "latin1")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const buildCString = (value: string): Buffer => Buffer.from(`${value}\0`)
const buildInt32 = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  values.forEach((value, i) => {
    bytes.writeInt32BE(value, 4 * i)
  })
  return bytes
}

export const buildQuery = (sql: string): Buffer => buildFrame("Q", buildCString(sql))
export const buildParse = (sql: string, name = ""): Buffer =>
  buildFrame("P", buildCString(name), buildCString(sql), Buffer.alloc(2))
/** Binds a prepared statement without parameters, with results as text. */
export const buildBind = (name: string): Buffer =>
  buildFrame("B", buildCString(""), buildCString(name), Buffer.alloc(6))
export const executeMessage: Buffer = buildFrame("E", buildCString(""), Buffer.alloc(4))
export const syncMessage: Buffer = buildFrame("S")
export const copyFailMessage: Buffer = buildFrame("f", buildCString("not supported"))
/** A startup packet for the database's only user. */
export const startupPacket: Buffer = (() => {
  const names = Buffer.from("user\0postgres\0database\0postgres\0\0")
  return Buffer.concat([buildInt32(8 + names.length, 3 << 16), names])
})()

/** Asks a server whether it supports TLS. Any PostgreSQL server responds, and no session starts. */
export const sslRequestPacket: Buffer = buildInt32(8, sslRequest)
export const noEncryptionReply: Buffer = Buffer.from("N")
export const protocolVersionMessage: Buffer = buildFrame("v", buildInt32(0, 0))
export const buildParameterStatus = (name: string, value: string): Buffer =>
  buildFrame("S", buildCString(name), buildCString(value))
export const buildKeyData = (id: number, secret: number): Buffer => buildFrame("K", buildInt32(id, secret))
export const readyMessage: Buffer = buildFrame("Z", Buffer.from("I"))
export const buildErrorResponse = (severity: "ERROR" | "FATAL", sqlState: string, message: string): Buffer =>
  buildFrame(
    "E",
    buildCString(`S${severity}`),
    buildCString(`V${severity}`),
    buildCString(`C${sqlState}`),
    buildCString(`M${message}`),
    Buffer.alloc(1)
  )

const copyNotSupported = buildErrorResponse(
  "ERROR",
  "0A000",
  "the embedded database does not support COPY FROM STDIN"
)

/** A message sent with `NOTIFY`. */
export interface Notification {
  readonly channel: string
  readonly payload: string
}

/** The database's response to some of a client's messages. */
export interface BackendResponse {
  readonly bytes: Buffer
  /** The status in `ReadyForQuery`: idle, in a transaction, or in a failed transaction. `undefined` without one. */
  readonly status: "I" | "T" | "E" | undefined
  readonly error: Buffer | undefined
  readonly notifications: ReadonlyArray<Notification>
  /** True if a statement ran that may have committed a transaction before the end of the response. */
  readonly mayCommit: boolean
}

/** Matches the command tags of statements that commit, or that may run a procedure that commits. */
const committingTag = /^(?:COMMIT|CALL|DO|PREPARE TRANSACTION)\b/

const parseNotification = (frame: Buffer): Notification => {
  const [channel = "", payload = ""] = frame.toString("utf8", 9).split("\0")
  return { channel, payload }
}

/** Splits the bytes of a server into its messages. */
export function* splitFrames(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; ) {
    const end = start + 1 + bytes.readInt32BE(start + 1)
    yield bytes.subarray(start, end)
    start = end
  }
}

/**
 * Parses a response of the database, and removes what the client must not see: notifications, which are for this
 * process, and `CopyInResponse`. The error after a `CopyInResponse` is replaced by one that says that the server
 * does not support it.
 */
export const parseBackendResponse = (bytes: Buffer): BackendResponse => {
  const parts: Array<Buffer> = []
  const notifications: Array<Notification> = []
  let copiedTo = 0
  let position = 0
  let isCopying = false
  let status: BackendResponse["status"]
  let error: Buffer | undefined
  let mayCommit = false
  const remove = (length: number, replacement?: Buffer): void => {
    parts.push(bytes.subarray(copiedTo, position))
    if (replacement !== undefined) parts.push(replacement)
    copiedTo = position + length
  }
  for (const frame of splitFrames(bytes)) {
    switch (frame[0]) {
      case code("A"):
        notifications.push(parseNotification(frame))
        remove(frame.length)
        break
      case code("G"):
        isCopying = true
        remove(frame.length)
        break
      case code("E"):
        error = isCopying ? copyNotSupported : frame
        if (isCopying) remove(frame.length, copyNotSupported)
        isCopying = false
        break
      case code("C"):
        mayCommit ||= committingTag.test(frame.toString("latin1", 5, frame.length - 1))
        break
      case code("Z"):
        status = String.fromCharCode(frame.readUInt8(5)) as "I" | "T" | "E"
    }
    position += frame.length
  }
  return {
    bytes: copiedTo === 0 ? bytes : Buffer.concat([...parts, bytes.subarray(copiedTo)]),
    status,
    error,
    notifications,
    mayCommit
  }
}

/** Returns the first column of each row of a response, as text. */
export const parseFirstColumn = (bytes: Buffer): Array<string> => {
  const values: Array<string> = []
  for (const frame of splitFrames(bytes))
    if (frame[0] === code("D"))
      values.push(frame.toString("utf8", 11, 11 + Math.max(0, frame.readInt32BE(7))))
  return values
}

/** The types of client messages, as character codes. */
export const messageTypes = {
  query: code("Q"),
  parse: code("P"),
  bind: code("B"),
  describe: code("D"),
  execute: code("E"),
  close: code("C"),
  functionCall: code("F"),
  flush: code("H"),
  sync: code("S"),
  copyData: code("d"),
  copyDone: code("c"),
  copyFail: code("f"),
  terminate: code("X")
} as const
