import { connect } from "node:net"

/** A response as received over the wire. */
export interface HttpResponse {
  readonly status: number
  /** The headers in the order received, with lowercase names. */
  readonly headers: ReadonlyArray<readonly [name: string, value: string]>
  readonly body: string
}

/** Returns the value of a header, or undefined. Throws if the header occurs more than once. */
export const getHeader = (response: HttpResponse, name: string): string | undefined => {
  const values = response.headers.filter(([header]) => header === name)
  if (values.length > 1) throw new Error(`${name} occurs ${values.length} times`)
  return values[0]?.[1]
}

/**
 * Splits the bytes received over one connection into responses. `isBodiless` returns true for the index of a response
 * to HEAD.
 */
const parseResponses = (bytes: Buffer, isBodiless: (index: number) => boolean): Array<HttpResponse> => {
  const responses: Array<HttpResponse> = []
  let at = 0
  while (at < bytes.length) {
    const end = bytes.indexOf("\r\n\r\n", at)
    if (end < 0) throw new Error(`a truncated response: ${bytes.subarray(at).toString("latin1")}`)
    const [statusLine, ...lines] = bytes.subarray(at, end).toString("latin1").split("\r\n")
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(statusLine!)![1])
    const headers = lines.map((line) => {
      const colon = line.indexOf(":")
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()] as const
    })
    const length = Number(headers.find(([name]) => name === "content-length")?.[1] ?? 0)
    // The server cannot know that an unparsable request is a HEAD request, so its error response has a body.
    const isParseError = status === 400 || status === 431
    const size =
      status === 304 || status < 200 || (isBodiless(responses.length) && !isParseError) ? 0 : length
    const body = bytes.subarray(end + 4, end + 4 + size)
    if (body.length < size && !(isBodiless(responses.length) && body.length === 0))
      throw new Error("a truncated body")
    // `100 Continue` precedes the response.
    if (status >= 200) responses.push({ status, headers, body: body.toString("utf8") })
    at = end + 4 + size
  }
  return responses
}

/**
 * Sends a string as Latin-1 bytes over a new connection and returns every response. Rejects if the server leaves the
 * connection open without sending anything for a minute.
 */
export const exchangeAll = (port: number, request: string): Promise<Array<HttpResponse>> =>
  new Promise((resolve, reject) => {
    const chunks: Array<Buffer> = []
    const socket = connect(port, "127.0.0.1", () => socket.write(request, "latin1"))
    socket.setTimeout(60_000, () =>
      socket.destroy(new Error(`still open; received: ${Buffer.concat(chunks).toString("latin1")}`))
    )
    socket.on("data", (chunk) => chunks.push(chunk))
    socket.on("error", (error: NodeJS.ErrnoException) => {
      // A server that rejects a request before it has read the whole request can reset the connection.
      if (error.code !== "ECONNRESET" && error.code !== "EPIPE") reject(error)
    })
    socket.on("close", () => {
      try {
        resolve(parseResponses(Buffer.concat(chunks), (index) => index === 0 && request.startsWith("HEAD ")))
      } catch (error) {
        reject(error)
      }
    })
  })

/** Sends one request like `exchangeAll` and returns its only response. */
export const exchange = async (port: number, request: string): Promise<HttpResponse> => {
  const responses = await exchangeAll(port, request)
  if (responses.length !== 1)
    throw new Error(`${responses.length} responses to ${JSON.stringify(request.slice(0, 200))}`)
  return responses[0]!
}

/** Returns the text of a request that asks the server to close the connection after the response. */
export const rawRequest = (target: string, lines: ReadonlyArray<string> = [], method = "GET"): string =>
  [`${method} ${target} HTTP/1.1`, "Host: localhost", "Connection: close", ...lines, "", ""].join("\r\n")
