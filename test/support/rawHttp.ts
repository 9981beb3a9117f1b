import { connect } from "node:net"
import { sent } from "./leaks.ts"

/** An answer as it came over the wire. */
export interface RawAnswer {
  readonly status: number
  /** Names in lower case, in the order they came. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: string
}

/** The one value of a header, or undefined; fails when it came more than once. */
export const headerOf = (answer: RawAnswer, name: string): string | undefined => {
  const values = answer.headers.filter(([header]) => header === name)
  if (values.length > 1) throw new Error(`${name} came ${values.length} times`)
  return values[0]?.[1]
}

/** Splits what came over one connection into answers. `bodiless` says which of them, by index, have no body. */
const parseAnswers = (bytes: Buffer, bodiless: (index: number) => boolean): Array<RawAnswer> => {
  const answers: Array<RawAnswer> = []
  let at = 0
  while (at < bytes.length) {
    const end = bytes.indexOf("\r\n\r\n", at)
    if (end < 0) throw new Error(`a torn answer: ${bytes.subarray(at).toString("latin1")}`)
    const [statusLine, ...lines] = bytes.subarray(at, end).toString("latin1").split("\r\n")
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine!)![1])
    const headers = lines.map((line) => {
      const colon = line.indexOf(":")
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    })
    const length = Number(headers.find(([name]) => name === "content-length")?.[1] ?? 0)
    // A head that can't be parsed has no method either: its refusal has a body, whatever was meant.
    const faulty = status === 400 || status === 431
    const size = status === 304 || status < 200 || (bodiless(answers.length) && !faulty) ? 0 : length
    const body = bytes.subarray(end + 4, end + 4 + size)
    if (body.length < size && !(bodiless(answers.length) && body.length === 0)) throw new Error("a torn body")
    // `100 Continue` is no answer yet.
    if (status >= 200) answers.push({ status, headers, body: body.toString("utf8") })
    at = end + 4 + size
  }
  return answers
}

/**
 * Sends bytes as they are over a connection of its own, which the server has to close in time, and gives every answer.
 * A text is sent as Latin-1, so that each character is a byte.
 */
export const exchangeAll = (port: number, request: string, timeout = 8_000): Promise<Array<RawAnswer>> =>
  new Promise((resolve, reject) => {
    sent(request)
    const chunks: Array<Buffer> = []
    const socket = connect(port, "127.0.0.1", () => socket.write(request, "latin1"))
    const timer = setTimeout(() => {
      socket.destroy()
      reject(new Error(`no end within ${timeout} ms; so far: ${Buffer.concat(chunks).toString("latin1")}`))
    }, timeout)
    socket.on("data", (chunk) => chunks.push(chunk))
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // A server that refuses a request in mid-flight may reset what it has not read.
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error)
    })
    socket.on("close", () => {
      clearTimeout(timer)
      try {
        resolve(parseAnswers(Buffer.concat(chunks), (index) => index === 0 && request.startsWith("HEAD ")))
      } catch (error) {
        reject(error)
      }
    })
  })

/** The same, for one request with one answer. */
export const exchange = async (port: number, request: string): Promise<RawAnswer> => {
  const answers = await exchangeAll(port, request)
  if (answers.length !== 1)
    throw new Error(`${answers.length} answers to ${JSON.stringify(request.slice(0, 200))}`)
  return answers[0]!
}

/** A request to be sent as it is; it asks for the connection to be closed after the answer. */
export const rawRequest = (target: string, lines: ReadonlyArray<string> = [], method = "GET"): string =>
  [`${method} ${target} HTTP/1.1`, "Host: localhost", "Connection: close", ...lines, "", ""].join("\r\n")
