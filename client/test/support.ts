import { vi } from "vitest"
import {
  type CallOptions,
  type ClientOptions,
  type FetchInit,
  type LogFields,
  type PageParams,
  PromptClient
} from "../src/index.ts"

export const key = `key_live_${"0123456789abcdef".repeat(4)}`

/** Fakes the client's clock: real I/O goes on, waits happen only where a test lets them. */
export const fakeTime = () =>
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance", "Date"] })

/** Lets everything run that waits for no timer. */
export const flush = async (): Promise<void> => {
  for (let turn = 0; turn < 5; turn++) await new Promise((resolve) => setImmediate(resolve))
}

/** Lets time pass, in milliseconds. */
export const pass = async (millis: number): Promise<void> => {
  await flush()
  await vi.advanceTimersByTimeAsync(millis)
  await flush()
}

/** How a call ended, and the milliseconds of fake time that it took: from timer to timer until it has. */
export const settle = async <A>(promise: Promise<A>) => {
  let ended: { readonly value: A } | { readonly error: unknown } | undefined
  promise.then(
    (value) => (ended = { value }),
    (error) => (ended = { error })
  )
  const start = performance.now()
  for (let turn = 0; turn < 1_000; turn++) {
    await flush()
    if (ended !== undefined) return { ...ended, took: performance.now() - start }
    vi.advanceTimersToNextTimer()
  }
  throw new Error("the call never ended")
}

/** The error that a call ends with. */
export const failure = async (promise: Promise<unknown>): Promise<Error> => {
  const ended = await settle(promise)
  if (!("error" in ended)) throw new Error(`no failure: ${JSON.stringify(ended.value)}`)
  return ended.error as Error
}

export const json = (status: number, body: unknown, headers: Record<string, string> = {}): Response =>
  new Response(JSON.stringify(body), { status, headers: { "content-type": "application/json", ...headers } })

export const refusal = (
  status: number,
  code: string,
  message: string,
  headers: Record<string, string> = {}
): Response => json(status, { error: { code, message } }, headers)

export const unavailable = (): Response =>
  refusal(503, "SERVICE_UNAVAILABLE", "Service unavailable", { "x-request-id": "req-503" })

export const limited = (retryAfter: string): Response =>
  refusal(429, "RATE_LIMITED", "Rate limit exceeded", {
    "retry-after": retryAfter,
    "x-request-id": "req-429"
  })

export const refused = (): never => {
  throw new TypeError("fetch failed", { cause: new Error("connect ECONNREFUSED 127.0.0.1:3000") })
}

/** Never answers; ends as `fetch` does when it is aborted. */
export const silent = ({ signal }: Request): Promise<never> =>
  new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason))
  })

export interface Request extends FetchInit {
  readonly url: string
}
export type Reply = (request: Request) => Response | Promise<Response>

/** A client whose requests are answered by a script, the last line again and again; it keeps what it was asked. */
export const scripted = (replies: ReadonlyArray<Reply>, options: Partial<ClientOptions> = {}) => {
  const requests: Array<Request> = []
  const log: Array<readonly [level: string, message: string, fields: LogFields]> = []
  const client = new PromptClient({
    apiKey: key,
    fetch: async (url, init) => {
      const request = { url, ...init }
      requests.push(request)
      return replies[Math.min(requests.length, replies.length) - 1]!(request)
    },
    logger: {
      debug: (message, fields) => void log.push(["debug", message, fields]),
      warn: (message, fields) => void log.push(["warn", message, fields])
    },
    ...options
  })
  return { client, requests, log }
}

/** Every call of the client there is. */
export const calls: ReadonlyArray<
  (client: PromptClient, options?: CallOptions, params?: PageParams) => Promise<unknown>
> = [
  (client, options, params) => client.prompts.list(params, options),
  (client, options) => client.prompts.get("p", options),
  (client, options) => client.prompts.getResolved("p", options),
  (client, options, params) => client.prompts.versions.list("p", params, options),
  (client, options) => client.prompts.versions.get("p", 1, options)
]
