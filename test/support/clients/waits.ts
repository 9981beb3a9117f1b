import { Agent, type IncomingHttpHeaders, request } from "node:http"

export interface WaitResponse {
  readonly status: number | undefined
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

/** A GET request that was sent. */
export interface SentRequest {
  readonly response: Promise<WaitResponse>
  /** Closes the connection of the request. */
  readonly close: () => void
}

export interface GetOptions {
  readonly port: number
  readonly target: string
  readonly key: string
  readonly headers?: Readonly<Record<string, string>>
}

const agent = new Agent({ keepAlive: false })

/** Sends a GET request on a new connection. */
export const sendGet = ({ port, target, key, headers = {} }: GetOptions): SentRequest => {
  const sent = request({
    ...{ port, agent, host: "127.0.0.1", path: target },
    headers: { authorization: `Bearer ${key}`, ...headers }
  })
  const response = new Promise<WaitResponse>((resolve, reject) => {
    sent.on("error", reject)
    sent.on("response", (response) => {
      let body = ""
      response.setEncoding("utf8").on("data", (chunk) => (body += chunk))
      response.on("error", reject)
      response.on("end", () => resolve({ status: response.statusCode, headers: response.headers, body }))
    })
  })
  response.catch(() => {})
  sent.end()
  return { response, close: () => sent.destroy() }
}

/** Sends a conditional GET that waits for a change, by default for longer than a test runs. */
export const sendWait = ({ etag, wait = 50, ...options }: GetOptions & { etag: string; wait?: number }) =>
  sendGet({ ...options, headers: { "if-none-match": etag, prefer: `wait=${wait}`, ...options.headers } })

/** Returns the part of a response that says whether and how the request waited. */
export const summarizeWait = ({ status, headers }: WaitResponse) => ({
  status,
  applied: headers["preference-applied"],
  caching: headers["cache-control"]
})
