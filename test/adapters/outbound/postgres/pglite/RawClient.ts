import { once } from "node:events"
import { connect, type Socket } from "node:net"

/** A response up to `ReadyForQuery`, or up to the end of the connection: then `status` is "closed". */
export interface QueryResponse {
  readonly rows: ReadonlyArray<ReadonlyArray<string | null>>
  readonly tags: ReadonlyArray<string>
  /** The SQLSTATE of each error. */
  readonly errors: ReadonlyArray<string>
  /** The types of all messages, in order. */
  readonly types: string
  readonly status: "I" | "T" | "E" | "closed"
}

export const message = (type: string, body: Buffer = Buffer.alloc(0)): Buffer => {
  const head = Buffer.alloc(5)
  head.write(type)
  head.writeInt32BE(body.length + 4, 1)
  return Buffer.concat([head, body])
}
const text = (value: string): Buffer => Buffer.from(`${value}\0`)

export const query = (sql: string): Buffer => message("Q", text(sql))
export const parse = (sql: string, name = ""): Buffer =>
  message("P", Buffer.concat([text(name), text(sql), Buffer.alloc(2)]))
export const bind = (statement = ""): Buffer =>
  message("B", Buffer.concat([text(""), text(statement), Buffer.alloc(6)]))
export const execute = (maxRows = 0): Buffer => {
  const rows = Buffer.alloc(4)
  rows.writeInt32BE(maxRows)
  return message("E", Buffer.concat([text(""), rows]))
}
export const sync = message("S")
export const flush = message("H")

const startup = (settings: Readonly<Record<string, string>>, version: number): Buffer => {
  const words = Object.entries({ user: "somebody", ...settings }).flat()
  const bytes = Buffer.concat([Buffer.alloc(8), ...words.map(text), Buffer.alloc(1)])
  bytes.writeInt32BE(bytes.length)
  bytes.writeInt32BE(version, 4)
  return bytes
}

const parseRow = (body: Buffer): Array<string | null> => {
  const row: Array<string | null> = []
  for (let at = 2; at < body.length; ) {
    const length = body.readInt32BE(at)
    row.push(length < 0 ? null : body.toString("utf8", at + 4, at + 4 + length))
    at += 4 + Math.max(0, length)
  }
  return row
}

/** A client of the raw wire protocol: the tests decide which messages are sent together, and when. */
export class RawClient {
  readonly socket: Socket
  #bytes = Buffer.alloc(0)
  #closed = false
  #wake: () => void = () => {}

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on("data", (chunk) => {
      this.#bytes = Buffer.concat([this.#bytes, chunk])
      this.#wake()
    })
    socket.on("error", () => {})
    socket.on("close", () => {
      this.#closed = true
      this.#wake()
    })
  }

  static async connect(
    path: string,
    settings: Readonly<Record<string, string>> = {},
    version = 3 << 16
  ): Promise<RawClient> {
    const client = await RawClient.dial(path)
    client.send(startup(settings, version))
    await client.readResponse()
    return client
  }

  static async dial(path: string): Promise<RawClient> {
    const socket = connect(path)
    await once(socket, "connect")
    return new RawClient(socket)
  }

  send(...messages: ReadonlyArray<Buffer>): void {
    this.socket.write(Buffer.concat(messages))
  }

  async #receive(bytes: number): Promise<Buffer | undefined> {
    while (this.#bytes.length < bytes && !this.#closed)
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    return this.#bytes.length < bytes ? undefined : this.#bytes.subarray(0, bytes)
  }

  /** Returns the next bytes, or `undefined` if the connection ends first. */
  async take(bytes: number): Promise<Buffer | undefined> {
    const taken = await this.#receive(bytes)
    if (taken !== undefined) this.#bytes = this.#bytes.subarray(bytes)
    return taken
  }

  async #message(): Promise<Buffer | undefined> {
    const head = await this.#receive(5)
    return head === undefined ? undefined : this.take(head.readInt32BE(1) + 1)
  }

  /** Reads up to `ReadyForQuery`, or up to a message of one of the types in `until`. */
  async readResponse(until = ""): Promise<QueryResponse> {
    const rows: Array<Array<string | null>> = []
    const tags: Array<string> = []
    const errors: Array<string> = []
    let types = ""
    for (;;) {
      const frame = await this.#message()
      if (frame === undefined) return { rows, tags, errors, types, status: "closed" }
      const type = String.fromCharCode(frame[0]!)
      const body = frame.subarray(5)
      types += type
      if (type === "D") rows.push(parseRow(body))
      if (type === "C") tags.push(body.toString("utf8", 0, body.length - 1))
      if (type === "E") errors.push(/\0C(.{5})\0/.exec(body.toString("latin1"))![1]!)
      if (type === "Z" || until.includes(type))
        return { rows, tags, errors, types, status: body.toString("latin1") as "I" | "T" | "E" }
    }
  }

  query(sql: string): Promise<QueryResponse> {
    this.send(query(sql))
    return this.readResponse()
  }

  /** Closes the socket without sending `Terminate`. */
  async drop(): Promise<void> {
    if (this.#closed) return
    this.socket.destroy()
    await once(this.socket, "close")
  }
}
