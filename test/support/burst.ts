/** The worker thread of `neighbors.ts`: sends requests, all at the same time, and posts the statuses. */
import { Agent, request } from "node:http"
import { parentPort, workerData } from "node:worker_threads"

/** One request: a GET, or a POST if it has a body. */
export interface BurstRequest {
  readonly path: string
  readonly body?: string
}

export interface Burst {
  readonly port: number
  readonly key: string
  readonly requests: ReadonlyArray<BurstRequest>
}

const { port, key, requests } = workerData as Burst
const agent = new Agent({ keepAlive: false })
const mcpHeaders = {
  "content-type": "application/json",
  accept: "application/json, text/event-stream",
  "mcp-protocol-version": "2025-11-25"
}

const send = ({ path, body }: BurstRequest): Promise<string> =>
  new Promise((resolve) => {
    const headers = { authorization: `Bearer ${key}`, ...(body === undefined ? {} : mcpHeaders) }
    const method = body === undefined ? "GET" : "POST"
    request({ port, agent, path, method, headers }, (response) => {
      response.resume()
      response.on("close", () => resolve(response.complete ? String(response.statusCode) : "cut off"))
    })
      .on("error", () => resolve("error"))
      .end(body)
  })

parentPort!.postMessage(await Promise.all(requests.map(send)))
