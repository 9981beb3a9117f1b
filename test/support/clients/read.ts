import { type Agent, get } from "node:http"

/** A response, or the error of the connection as `status`. */
export interface Reply {
  readonly status: number | string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: string
  /** `startedAt` and `endedAt` are values of `performance.now()`. */
  readonly startedAt: number
  readonly endedAt: number
}

/** Sends one GET request with a key. Never rejects. */
export const read = (
  url: string,
  key: string,
  agent: Agent | undefined = undefined,
  headers: Readonly<Record<string, string>> = {}
): Promise<Reply> =>
  new Promise((resolve) => {
    const startedAt = performance.now()
    const end = (status: Reply["status"], headers: Reply["headers"] = {}, body = "") =>
      resolve({ status, headers, body, startedAt, endedAt: performance.now() })
    const options = { headers: { authorization: `Bearer ${key}`, ...headers }, timeout: 30_000 }
    const request = get(url, agent === undefined ? options : { ...options, agent }, (response) => {
      let body = ""
      response.setEncoding("utf8")
      response.on("data", (chunk) => (body += chunk))
      response.on("error", () => end("truncated"))
      response.on("end", () => end(response.statusCode!, response.headers, body))
    })
    request.on("timeout", () => request.destroy(new Error("no response in time")))
    request.on("error", (error: NodeJS.ErrnoException) => end(error.code ?? error.message))
  })
