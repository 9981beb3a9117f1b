import { type Agent, type IncomingHttpHeaders, request } from "node:http"

/** A response. If the connection fails, `status` is the code of the error. */
export interface Reply {
  readonly status: number | string
  readonly headers: IncomingHttpHeaders
  readonly body: string
  /** `startedAt` and `endedAt` are values of `performance.now()`. */
  readonly startedAt: number
  readonly endedAt: number
}

/** Sends one GET request with a key. Without an agent, the request uses a new connection. */
export const sendGet = (
  url: string,
  key: string,
  headers: Readonly<Record<string, string>> = {},
  agent: Agent | false = false
) => {
  const startedAt = performance.now()
  const sent = request(url, { agent, headers: { authorization: `Bearer ${key}`, ...headers } })
  const response = new Promise<Reply>((resolve) => {
    const end = (status: Reply["status"], headers: Reply["headers"] = {}, body = "") =>
      resolve({ status, headers, body, startedAt, endedAt: performance.now() })
    sent.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
    sent.on("response", (response) => {
      let body = ""
      response.setEncoding("utf8").on("data", (chunk) => (body += chunk))
      response.on("error", () => end("truncated"))
      response.on("end", () => end(response.statusCode!, response.headers, body))
    })
  })
  sent.end()
  return {
    /** Resolves to the response or to the error. Never rejects. */
    response,
    /** Closes the connection of the request. */
    close: (): void => void sent.destroy()
  }
}

/** Sends one GET request with a key, and returns the response. */
export const read = (...request: Parameters<typeof sendGet>): Promise<Reply> => sendGet(...request).response

/** Sends a conditional GET that waits for a change, by default for longer than a test runs. */
export const sendWait = (url: string, key: string, etag: string | undefined, wait = 50) =>
  sendGet(url, key, { "if-none-match": etag!, prefer: `wait=${wait}` })

/** Returns the status and the headers that show whether and how long a request could wait. */
export const summarizeWait = ({ status, headers }: Reply) => ({
  status,
  applied: headers["preference-applied"],
  caching: headers["cache-control"]
})
