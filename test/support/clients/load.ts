import { Agent, get, type IncomingMessage } from "node:http"

/**
 * The outcome of one request: the status of its response, a fault of the response, or an error of the connection.
 */
export type LoadOutcome = number | string

const describeResponse = ({ complete, statusCode, headers }: IncomingMessage): LoadOutcome => {
  if (!complete) return "truncated"
  return statusCode === 503 && headers["retry-after"] === undefined ? "503 without Retry-After" : statusCode!
}

const sendOne = (
  agent: Agent,
  url: string,
  headers: Readonly<Record<string, string>>
): Promise<LoadOutcome> =>
  new Promise((resolve) => {
    const request = get(url, { agent, headers, timeout: 10_000 }, (response) => {
      response.resume()
      response.on("error", () => resolve("truncated"))
      response.on("end", () => resolve(describeResponse(response)))
    })
    request.on("timeout", () => request.destroy(new Error("no response in time")))
    request.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })

/** Load that runs until it is stopped. */
export interface Load {
  /** Stops the clients after their current requests. Returns the number of requests with each outcome. */
  readonly stop: () => Promise<Readonly<Record<LoadOutcome, number>>>
  /** Returns how many requests have ended so far. */
  readonly count: () => number
}

/** Starts clients with one connection each. A client sends a request whenever its last request has ended. */
export const startLoad = (
  urls: ReadonlyArray<string>,
  headers: Readonly<Record<string, string>>,
  clients = 8
): Load => {
  const outcomes: Record<LoadOutcome, number> = {}
  let running = true
  let count = 0
  const client = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (running) {
      const outcome = await sendOne(agent, urls[count % urls.length]!, headers)
      outcomes[outcome] = (outcomes[outcome] ?? 0) + 1
      count++
    }
    agent.destroy()
  }
  const clientsDone = Promise.all(Array.from({ length: clients }, client))
  return {
    count: () => count,
    stop: async () => {
      running = false
      await clientsDone
      return outcomes
    }
  }
}
