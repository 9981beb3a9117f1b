import { expect } from "vitest"
import type { Service } from "../service.ts"

/** The outcome of a request. The client waits longer than the service may take. */
export interface Outcome {
  /** `closed`: the connection ended without a response. `hang`: no response before the client's timeout. */
  readonly status: number | "closed" | "hang"
  /** `error.code` of an error envelope, "data" for any other response, or undefined without a response. */
  readonly code: string | undefined
  readonly body: string
  /** The duration in milliseconds. */
  readonly duration: number
}

/** The service's request deadline of 5 s, and a reserve of 1 s for a busy machine, in milliseconds. */
const requestDeadlineMs = 5_000 + 1_000

/** Returns `error.code` of an error envelope, or "data" for other JSON. Throws if the body is not JSON. */
const parseCode = (body: string): string => {
  const { error } = JSON.parse(body)
  return error === undefined ? "data" : error.code
}

/** Sends one request, over a connection that may be reused. */
export const send = async (service: Service, path: string, authorization?: string): Promise<Outcome> => {
  const started = performance.now()
  const end = (status: Outcome["status"], body = "") => ({
    status,
    body,
    code: typeof status === "number" ? parseCode(body) : undefined,
    duration: performance.now() - started
  })
  try {
    const response = await fetch(service.url + path, {
      headers: authorization === undefined ? {} : { authorization },
      signal: AbortSignal.timeout(2 * requestDeadlineMs)
    })
    return end(response.status, await response.text())
  } catch (error) {
    if (error instanceof SyntaxError) throw error
    return end((error as Error).name === "TimeoutError" ? "hang" : "closed")
  }
}

/** Expects every request to end before its deadline, with one of these codes or a closed connection. */
export const expectCodesInTime = (outcomes: ReadonlyArray<Outcome>, codes: ReadonlyArray<string>): void => {
  const violations = outcomes.filter(
    ({ status, code, duration }) =>
      duration > requestDeadlineMs || !(status === "closed" || codes.includes(code!))
  )
  expect(violations).toEqual([])
}

/** Expects requests that need no database to get their usual responses within 1.5 s in total. */
export const expectBystandersUnaffected = async (service: Service): Promise<void> => {
  const started = performance.now()
  const post = async () => {
    const response = await fetch(`${service.url}/api/v1/prompts`, { method: "POST" })
    return [response.status, parseCode(await response.text())]
  }
  const get = async (path: string, authorization?: string) => {
    const { status, code } = await send(service, path, authorization)
    return [status, code]
  }
  const health = await fetch(`${service.url}/healthz`)
  await health.arrayBuffer()
  expect([
    health.status,
    await get("/nowhere"),
    await post(),
    await get("/api/v1/prompts"),
    await get("/api/v1/prompts", "Bearer other_live_0"),
    await get("/api/v1/prompts", "Bearer key_live_0")
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

/** Sends a request until its response is 200 and returns how long that took, in milliseconds. */
export const waitUntilOk = async (
  service: Service,
  path: string,
  authorization: string,
  timeoutMs = 10_000
): Promise<number> => {
  const started = performance.now()
  for (;;) {
    const { status } = await send(service, path, authorization)
    const duration = performance.now() - started
    if (status === 200) return duration
    if (duration > timeoutMs) throw new Error(`still ${status} after ${Math.round(duration)} ms`)
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
}

let requests = 0

/** Adds a query that no earlier request had, so that the response cache cannot serve the request. */
export const uncachedPath = (path: string): string =>
  `${path}${path.includes("?") ? "&" : "?"}uncached=${requests++}`
