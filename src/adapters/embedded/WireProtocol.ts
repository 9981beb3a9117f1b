/** The parts of the PostgreSQL wire protocol, version 3, that the session server speaks. Bytes in, bytes out. */

/** A message of a client: its type as a character code, 0 before the session has started, and its whole frame. */
export interface Message {
  readonly type: number
  readonly frame: Buffer
}

/** A client that doesn't keep to the protocol; the connection can't go on. */
export class ProtocolViolation extends Error {}

/** The largest message that a client may send, in bytes. */
export const maxMessageBytes = 64 * 1024 * 1024
const maxStartupBytes = 10_000

const sslRequest = 80877103
const gssRequest = 80877104
const cancelRequest = 80877102

const code = (character: string): number => character.charCodeAt(0)

/** Cuts what a client sends into messages, however it arrives. */
export class MessageReader {
  #chunks: Array<Buffer> = []
  #bytes = 0
  #wanted = 0
  #started = false

  /** The messages that this chunk completes. Throws `ProtocolViolation`. */
  push(chunk: Buffer): Array<Message> {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
    // A large message comes in many chunks: they are joined once, when all are there.
    if (this.#bytes < this.#wanted) return []
    const bytes = this.#chunks.length === 1 ? chunk : Buffer.concat(this.#chunks)
    const messages: Array<Message> = []
    let start = 0
    for (;;) {
      const header = this.#started ? 5 : 4
      this.#wanted = header
      if (bytes.length - start < header) break
      this.#wanted = this.#frameBytes(bytes.readUInt32BE(start + header - 4))
      if (bytes.length - start < this.#wanted) break
      const frame = bytes.subarray(start, start + this.#wanted)
      messages.push({ type: this.#started ? frame[0]! : 0, frame })
      this.#started ||= endsStartup(frame)
      start += this.#wanted
    }
    this.#chunks = start === bytes.length ? [] : [bytes.subarray(start)]
    this.#bytes = bytes.length - start
    return messages
  }

  #frameBytes(length: number): number {
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

/** What a client asks for before its session starts; `settings` are the run-time parameters it wants to have. */
export type Startup =
  | { readonly _tag: "Encryption" }
  | { readonly _tag: "Cancel" }
  | { readonly _tag: "Unsupported" }
  | { readonly _tag: "Session"; readonly minor: number; readonly settings: ReadonlyMap<string, string> }

const option = /-c\s*([\w.]+)=((?:\\.|\S)*)/g

export const parseStartup = (frame: Buffer): Startup => {
  const request = frame.readInt32BE(4)
  if (request === sslRequest || request === gssRequest) return { _tag: "Encryption" }
  if (request === cancelRequest) return { _tag: "Cancel" }
  if (request >> 16 !== 3) return { _tag: "Unsupported" }
  const words = frame.toString("utf8", 8).split("\0")
  const settings = new Map<string, string>()
  for (let i = 0; i + 1 < words.length && words[i] !== ""; i += 2) {
    const name = words[i]!.toLowerCase()
    const value = words[i + 1]!
    if (name === "options") {
      for (const [, key, text] of value.matchAll(option)) settings.set(key!, text!.replace(/\\(.)/g, "$1"))
    } else if (!notSettings.has(name) && !name.startsWith("_pq_.")) settings.set(name, value)
  }
  return { _tag: "Session", minor: request & 0xffff, settings }
}

/** The server has one user and one database: any name of either is welcome. */
const notSettings = new Set(["user", "database", "replication"])

const frame = (type: string, ...parts: ReadonlyArray<Buffer>): Buffer => {
  const head = Buffer.alloc(5)
  const body = Buffer.concat(parts)
  head.write(type, "latin1")
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const text = (value: string): Buffer => Buffer.from(`${value}\0`)
const int32 = (...values: ReadonlyArray<number>): Buffer => {
  const bytes = Buffer.alloc(4 * values.length)
  values.forEach((value, i) => {
    bytes.writeInt32BE(value, 4 * i)
  })
  return bytes
}

export const query = (sql: string): Buffer => frame("Q", text(sql))
export const parse = (sql: string, name = ""): Buffer => frame("P", text(name), text(sql), Buffer.alloc(2))
/** Binds a prepared statement without parameters; its results are text. */
export const bind = (name: string): Buffer => frame("B", text(""), text(name), Buffer.alloc(6))
export const execute: Buffer = frame("E", text(""), Buffer.alloc(4))
export const sync: Buffer = frame("S")
export const copyFail: Buffer = frame("f", text("not supported"))
/** A startup packet of the database's own user. */
export const startup: Buffer = (() => {
  const names = Buffer.from("user\0postgres\0database\0postgres\0\0")
  return Buffer.concat([int32(8 + names.length, 3 << 16), names])
})()

/** Asks a server whether it speaks TLS: any that is there answers, and nothing begins. */
export const sslRequestPacket: Buffer = int32(8, sslRequest)
export const noEncryption: Buffer = Buffer.from("N")
export const protocolVersion3: Buffer = frame("v", int32(0, 0))
export const parameterStatus = (name: string, value: string): Buffer => frame("S", text(name), text(value))
export const keyData = (id: number, secret: number): Buffer => frame("K", int32(id, secret))
export const ready: Buffer = frame("Z", Buffer.from("I"))
export const errorResponse = (severity: "ERROR" | "FATAL", sqlState: string, message: string): Buffer =>
  frame(
    "E",
    text(`S${severity}`),
    text(`V${severity}`),
    text(`C${sqlState}`),
    text(`M${message}`),
    Buffer.alloc(1)
  )

const copyRefused = errorResponse("ERROR", "0A000", "the embedded database does not support COPY FROM STDIN")

/** A message of `NOTIFY`. */
export interface Notice {
  readonly channel: string
  readonly payload: string
}

/** What the database answered to a part of a client's messages. */
export interface Answer {
  readonly bytes: Buffer
  /** Where the session is afterwards, of the answer's `ReadyForQuery`: idle, in a transaction, in a failed one. */
  readonly status: "I" | "T" | "E" | undefined
  readonly error: Buffer | undefined
  readonly notices: ReadonlyArray<Notice>
  /** Whether a statement ran that may have committed a transaction before the end of the answer. */
  readonly mayCommit: boolean
}

/** The command tags of statements that commit, or that may run a procedure that commits. */
const committing = /^(?:COMMIT|CALL|DO|PREPARE TRANSACTION)\b/

const parseNotice = (frame: Buffer): Notice => {
  const [channel = "", payload = ""] = frame.toString("utf8", 9).split("\0")
  return { channel, payload }
}

/** The messages of a server, one by one, whole. */
export function* framesOf(bytes: Buffer): Generator<Buffer> {
  for (let start = 0; start < bytes.length; ) {
    const end = start + 1 + bytes.readInt32BE(start + 1)
    yield bytes.subarray(start, end)
    start = end
  }
}

/**
 * Reads what the database answered. Notices are the session's, not the client's: they are taken out. So is the
 * invitation to send rows for a `COPY`: the error that follows it is said in this server's own words.
 */
export const readAnswer = (bytes: Buffer): Answer => {
  const kept: Array<Buffer> = []
  const notices: Array<Notice> = []
  let keptTo = 0
  let at = 0
  let copying = false
  let status: Answer["status"]
  let error: Buffer | undefined
  let mayCommit = false
  const cut = (length: number, instead?: Buffer): void => {
    kept.push(bytes.subarray(keptTo, at))
    if (instead !== undefined) kept.push(instead)
    keptTo = at + length
  }
  for (const frame of framesOf(bytes)) {
    switch (frame[0]) {
      case code("A"):
        notices.push(parseNotice(frame))
        cut(frame.length)
        break
      case code("G"):
        copying = true
        cut(frame.length)
        break
      case code("E"):
        error = copying ? copyRefused : frame
        if (copying) cut(frame.length, copyRefused)
        copying = false
        break
      case code("C"):
        mayCommit ||= committing.test(frame.toString("latin1", 5, frame.length - 1))
        break
      case code("Z"):
        status = String.fromCharCode(frame[5]!) as "I" | "T" | "E"
    }
    at += frame.length
  }
  return {
    bytes: keptTo === 0 ? bytes : Buffer.concat([...kept, bytes.subarray(keptTo)]),
    status,
    error,
    notices,
    mayCommit
  }
}

/** The first column of each row of an answer. */
export const firstColumn = (bytes: Buffer): Array<string> => {
  const values: Array<string> = []
  for (const frame of framesOf(bytes))
    if (frame[0] === code("D"))
      values.push(frame.toString("utf8", 11, 11 + Math.max(0, frame.readInt32BE(7))))
  return values
}

/** The messages of a client, by their type. */
export const types = {
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
