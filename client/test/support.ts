import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { afterEach, beforeEach, vi } from "vitest"
import {
  type CallOptions,
  type ClientOptions,
  type FetchInit,
  type LogFields,
  type PageParams,
  PromptClient,
  type ResolvedOptions
} from "../src/index.ts"

export const key = `key_live_${"0123456789abcdef".repeat(4)}`

/** Generates one of the values. A value that is given twice is twice as frequent. */
export const oneOf = <A extends string | number>(...values: ReadonlyArray<A>) =>
  Arbitrary.schema(Schema.Literals(values))

/** The real `setTimeout`, which works even while the timers are fake. */
const setRealTimeout = globalThis.setTimeout

/** Installs fake timers. Real I/O continues. The fake time passes only when a test advances it. */
export const installFakeTime = () =>
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] })

/**
 * Starts fake timers before each test of a file, and removes all mocks after the test. If `random` is given,
 * `Math.random` returns this number.
 */
export const useFakeTime = (random?: number): void => {
  beforeEach(() => {
    installFakeTime()
    if (random !== undefined) vi.spyOn(Math, "random").mockReturnValue(random)
  })
  afterEach(() => {
    vi.restoreAllMocks()
    vi.useRealTimers()
  })
}

/** Makes `Math.random` return evenly distributed values, in whatever order the clients call it. */
export const spreadRandomValues = (): void => {
  let value = 0
  vi.spyOn(Math, "random").mockImplementation(() => (value = (value + 0.6180339887) % 1))
}

/** Runs everything that does not wait for a timer. */
export const flush = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Advances the fake clock by a number of milliseconds. */
export const advance = async (millis: number): Promise<void> => {
  await flush()
  await vi.advanceTimersByTimeAsync(millis)
  await flush()
}

/** Advances the fake clock until a promise settles. Returns its outcome and the elapsed fake milliseconds. */
export const settle = async <A>(promise: Promise<A>) => {
  let outcome: { readonly value: A } | { readonly error: Error } | undefined
  promise.then(
    (value) => (outcome = { value }),
    (error) => (outcome = { error })
  )
  const start = performance.now()
  for (let turn = 0; turn < 1_000; turn++) {
    await flush()
    if (outcome !== undefined) return { ...outcome, took: performance.now() - start }
    // If there is no timer, the call waits for work of another thread, such as a hash.
    if (vi.getTimerCount() === 0) await new Promise((resolve) => setRealTimeout(resolve, 2))
    vi.advanceTimersToNextTimer()
  }
  throw new Error("the call did not settle")
}

/** Advances the fake clock until a promise resolves. */
export const awaitValue = async <A>(promise: Promise<A>): Promise<A> => {
  const outcome = await settle(promise)
  if ("error" in outcome) throw outcome.error
  return outcome.value
}

/** Returns the error that a promise rejects with. Throws if the promise resolves. */
export const captureError = async (promise: Promise<unknown>): Promise<Error> => {
  const outcome = await settle(promise)
  if ("value" in outcome) throw new Error(`expected a rejection, got ${JSON.stringify(outcome.value)}`)
  return outcome.error
}

/** Reads a resolved prompt. Returns its text and the source of the text, or the name of the error. */
export const readText = async (client: PromptClient, prompt = "p", options: ResolvedOptions = {}) => {
  const outcome = await settle(client.prompts.getResolved(prompt, options))
  if ("error" in outcome) return outcome.error.name
  return `${outcome.value.data.resolved_content} (${outcome.value.source})`
}

export interface Request extends FetchInit {
  readonly url: string
}
export type Responder = (request: Request) => Response | Promise<Response>

export const jsonResponse = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } })

/** Responds with a resolved prompt. */
export const textResponse = (text: string, headers: Record<string, string> = {}): Response =>
  jsonResponse(200, { data: { id: "p", resolved_content: text } }, headers)

export const envelope = { data: { id: "p" } }

export const ok = (): Response => jsonResponse(200, envelope, { "x-request-id": "req-200" })

export const errorResponse = (
  status: number,
  code = "CODE",
  message = "No",
  headers: Record<string, string> = {}
): Response => jsonResponse(status, { error: { code, message } }, headers)

export const unauthorized = (): Response => errorResponse(401, "UNAUTHORIZED", "API key has been revoked")

export const serviceUnavailable = (): Response =>
  errorResponse(503, "SERVICE_UNAVAILABLE", "Service unavailable", { "x-request-id": "req-503" })

export const rateLimited = (retryAfter: string): Response =>
  errorResponse(429, "RATE_LIMITED", "Rate limit exceeded", {
    "retry-after": retryAfter,
    "x-request-id": "req-429"
  })

/** Returns a responder that sends an HTML page. */
export const page = (status: number) => (): Response =>
  new Response("<html>", { status, headers: { "content-type": "text/html", "x-request-id": "req-page" } })

export const connectionRefused = (): never => {
  throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED 127.0.0.1:3000") })
}

/** Never responds. Rejects like `fetch` when the request is aborted. */
export const neverResponds: Responder = ({ signal }) =>
  new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)))

/** Creates a client that gets scripted responses, and records its requests and log lines. The last response repeats. */
export const makeScriptedClient = (script: ReadonlyArray<Responder>, options: ClientOptions = {}) => {
  const responders = [...script]
  const requests: Array<Request> = []
  const log: Array<readonly [level: string, message: string, fields: LogFields]> = []
  const client = new PromptClient({
    apiKey: key,
    fetch: async (url, init) => {
      const request = { url, ...init }
      requests.push(request)
      return (responders.length > 1 ? responders.shift()! : responders[0]!)(request)
    },
    logger: {
      debug: (...line) => void log.push(["debug", ...line]),
      warn: (...line) => void log.push(["warn", ...line])
    },
    ...options
  })
  /** From now on, all requests get this response. */
  const respondWith = (responder: Responder) => void responders.splice(0, responders.length, responder)
  const read = (options?: ResolvedOptions, prompt?: string) => readText(client, prompt, options)
  return { client, read, requests, log, respondWith }
}

export const allCalls: ReadonlyArray<
  (client: PromptClient, options?: CallOptions, params?: PageParams) => Promise<unknown>
> = [
  (client, options, params) => client.prompts.list(params, options),
  (client, options) => client.prompts.get("p", options),
  (client, options) => client.prompts.getResolved("p", options),
  (client, options, params) => client.prompts.versions.list("p", params, options),
  (client, options) => client.prompts.versions.get("p", 1, options)
]
