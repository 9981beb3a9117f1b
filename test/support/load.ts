import { Agent, get } from "node:http"

/** How one request ended: a status, or what happened to the connection instead. */
export type Ended = number | string

const ask = (agent: Agent, url: string, headers: Readonly<Record<string, string>>): Promise<Ended> =>
  new Promise((resolve) => {
    const request = get(url, { agent, headers, timeout: 10_000 }, (response) => {
      response.resume()
      response.on("error", () => resolve("broken off"))
      response.on("end", () => resolve(response.complete ? response.statusCode! : "broken off"))
    })
    request.on("timeout", () => request.destroy(new Error("no answer in time")))
    request.on("error", (error: NodeJS.ErrnoException) => resolve(error.code ?? error.message))
  })

/** Load that runs until it is stopped. */
export interface Load {
  /** Ends it once its requests have ended, and gives how many ended which way. */
  readonly stop: () => Promise<Readonly<Record<Ended, number>>>
  /** How many requests have ended so far. */
  readonly count: () => number
}

/** A few clients with a kept connection each, which ask again as soon as they are answered. */
export const startLoad = (
  urls: ReadonlyArray<string>,
  headers: Readonly<Record<string, string>>,
  clients = 8
): Load => {
  const outcomes: Record<Ended, number> = {}
  let running = true
  let count = 0
  const client = async () => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    while (running) {
      const ended = await ask(agent, urls[count % urls.length]!, headers)
      outcomes[ended] = (outcomes[ended] ?? 0) + 1
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
