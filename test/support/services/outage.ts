import { Agent, get } from "node:http"
import { setTimeout } from "node:timers/promises"
import { fragment, fragmentBinding, prompt, sample, version } from "../archives.ts"
import type { Service } from "../service.ts"

// Clients that send known and unknown reads to several services. Their responses are checked against the history of
// the database while the database is unavailable, and after it has returned.

/** A response, or the error of the connection as `status`. */
export interface Reply {
  readonly status: number | string
  readonly headers: Readonly<Record<string, string | ReadonlyArray<string> | undefined>>
  readonly body: string
  /** A time of `performance.now()`. */
  readonly startedAt: number
  readonly endedAt: number
}

/** The value of `Cache-Status` of responses from before an outage. */
export const outageStatus = "prompt-retrieval; hit; detail=database-unavailable"

/** Returns true if a response was served without the database. */
export const isFromBefore = ({ headers }: Reply): boolean => headers["cache-status"] === outageStatus

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

/** Returns a workspace with some prompts, each of which has every kind of resource. */
export const makeOutageTenant = () => {
  const tenant = sample()
  const shared = fragment("Be brief.")
  const prompts = Array.from({ length: 20 }, (_, i) =>
    prompt({
      title: `Prompt ${i}`,
      fragments: [fragmentBinding(shared, 1)],
      versions: [version(1, {}), version(2, {})]
    })
  )
  const archive = { ...tenant.archive, fragments: [shared], prompts, folders: [], tags: [] }
  const targets = [
    "/api/v1/prompts",
    "/api/v1/prompts?per_page=5",
    ...prompts.flatMap(({ id }) =>
      ["", "/resolved", "/versions", "/versions/1"].map((end) => `/api/v1/prompts/${id}${end}`)
    )
  ]
  return { ...tenant, archive, targets }
}
export type OutageTenant = ReturnType<typeof makeOutageTenant>

/** Reads every target on every service, so that every service has a known response for every target. */
export const warm = async (
  services: ReadonlyArray<Service>,
  { targets, keys }: OutageTenant
): Promise<void> => {
  for (const { url } of services) {
    for (const target of targets) {
      const { status } = await read(url + target, keys.active.plaintext)
      if (status !== 200) throw new Error(`${target}: ${status}`)
    }
  }
}

/** The load of one phase of a test. */
export interface KnownLoad {
  /** Stops the clients and returns all replies. */
  readonly stop: () => Promise<ReadonlyArray<Reply>>
}

/**
 * Starts clients that read the known targets in turn. Each client waits `pauseMs` between its requests, so that the
 * load of two phases is the same.
 */
export const startKnownLoad = (
  services: ReadonlyArray<Service>,
  { targets, keys }: OutageTenant,
  clients = 8,
  pauseMs = 1
): KnownLoad => {
  const replies: Array<Reply> = []
  let running = true
  const client = async (offset: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = offset; running; i++) {
      const { url } = services[i % services.length]!
      const target = targets[(i * 7) % targets.length]!
      const reply = await read(url + target, keys.active.plaintext, agent)
      // The bodies of thousands of replies would fill the memory of the test.
      replies.push({ ...reply, body: "" })
      await setTimeout(pauseMs)
    }
    agent.destroy()
  }
  const all = Promise.all(Array.from({ length: clients }, (_, i) => client(i * 13)))
  return {
    stop: async () => {
      running = false
      await all
      return replies
    }
  }
}

let unknown = 0

/** Starts a client per service that sends only reads that no client has sent before. */
export const startUnknownLoad = (
  services: ReadonlyArray<Service>,
  { targets, keys }: OutageTenant
): KnownLoad => {
  const replies: Array<Reply> = []
  let running = true
  const client = async ({ url }: Service) => {
    while (running) {
      const target = targets[2 + (unknown % (targets.length - 2))]!
      replies.push(await read(`${url}${target}?unknown=${unknown++}`, keys.active.plaintext))
      await setTimeout(20)
    }
  }
  const all = Promise.all(services.map(client))
  return {
    stop: async () => {
      running = false
      await all
      return replies
    }
  }
}

/** Returns the quantile of values at `share`, which is a number from 0 to 1. */
export const quantile = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(share * values.length))]!

/** Returns the 99th percentile of the durations, in milliseconds. */
export const p99 = (replies: ReadonlyArray<Reply>): number =>
  quantile(
    replies.map(({ startedAt, endedAt }) => endedAt - startedAt),
    0.99
  )
