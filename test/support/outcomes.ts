import { expect } from "vitest"
import type { Service } from "./service.ts"

/** How a request ended, for a client that waits longer than the service may take. */
export interface Outcome {
  /** `closed`: the connection ended without an answer. `hang`: nothing came. */
  readonly status: number | "closed" | "hang"
  /** `error.code` of the envelope; `data` where it is no error. */
  readonly said: string | undefined
  readonly body: string
  /** Milliseconds. */
  readonly duration: number
}

/** A request's deadline is 5 s (DESIGN.md section 8); a busy machine may add some to it. */
export const deadline = 5_000 + 1_000

/** What an answer says: the one code of an error, or that it is none; anything but JSON throws. */
const saidBy = (body: string): string => {
  const { error } = JSON.parse(body)
  return error === undefined ? "data" : error.code
}

/** Asks once, over a connection that may be kept. */
export const ask = async (service: Service, path: string, authorization?: string): Promise<Outcome> => {
  const started = performance.now()
  const end = (status: Outcome["status"], body = "") => ({
    status,
    body,
    said: typeof status === "number" ? saidBy(body) : undefined,
    duration: performance.now() - started
  })
  try {
    const response = await fetch(service.url + path, {
      headers: authorization === undefined ? {} : { authorization },
      signal: AbortSignal.timeout(2 * deadline)
    })
    return end(response.status, await response.text())
  } catch (error) {
    if (error instanceof SyntaxError) throw error
    return end((error as Error).name === "TimeoutError" ? "hang" : "closed")
  }
}

/** The envelope of one of these errors, or a closed connection, and all of it before the deadline. */
export const expectInvariant = (outcomes: ReadonlyArray<Outcome>, codes: ReadonlyArray<string>): void => {
  const breaks = outcomes.filter(
    ({ status, said, duration }) => duration > deadline || !(status === "closed" || codes.includes(said!))
  )
  expect(breaks).toEqual([])
}

/** What needs no database is answered as ever, and as fast. */
export const expectBystandersUnaffected = async (service: Service): Promise<void> => {
  const started = performance.now()
  const post = async () => {
    const response = await fetch(`${service.url}/api/v1/prompts`, { method: "POST" })
    return [response.status, saidBy(await response.text())]
  }
  const of = async (path: string, authorization?: string) => {
    const { status, said } = await ask(service, path, authorization)
    return [status, said]
  }
  const health = await fetch(`${service.url}/healthz`)
  await health.arrayBuffer()
  expect([
    health.status,
    await of("/nowhere"),
    await post(),
    await of("/api/v1/prompts"),
    await of("/api/v1/prompts", "Bearer other_live_0"),
    await of("/api/v1/prompts", "Bearer key_live_0")
  ]).toEqual([
    200,
    [404, "NOT_FOUND"],
    [405, "METHOD_NOT_ALLOWED"],
    [401, "UNAUTHORIZED"],
    [401, "UNAUTHORIZED"],
    [401, "UNAUTHORIZED"]
  ])
  expect(performance.now() - started).toBeLessThan(1_500)
}

/** Asks until it is answered with data, one request after another, and gives how long that took, in milliseconds. */
export const untilAnswered = async (
  service: Service,
  path: string,
  authorization: string,
  patience = 10_000
): Promise<number> => {
  const started = performance.now()
  for (;;) {
    const { status } = await ask(service, path, authorization)
    const duration = performance.now() - started
    if (status === 200) return duration
    if (duration > patience) throw new Error(`still ${status} after ${Math.round(duration)} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

let asked = 0

/** A path that nobody has asked for before: what is kept ready does not answer it. */
export const fresh = (path: string): string => `${path}${path.includes("?") ? "&" : "?"}asked=${asked++}`
