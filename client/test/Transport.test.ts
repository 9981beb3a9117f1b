import { it as effectIt } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { expect, it, vi } from "vitest"
import { AbortError } from "../src/index.ts"
import {
  advance,
  allCalls,
  captureError,
  connectionRefused,
  envelope,
  errorResponse,
  flush,
  installFakeTime,
  key,
  makeScriptedClient,
  neverResponds,
  ok,
  oneOf,
  type Responder,
  rateLimited,
  serviceUnavailable,
  settle,
  useFakeTime
} from "./support.ts"

useFakeTime()

it("a request has the API key, the headers of the client and the headers of the call, and does not follow redirects", async () => {
  const { client, requests } = makeScriptedClient([ok], { headers: { "X-App": "one", "x-both": "client" } })
  await client.prompts.get("p", { headers: { "X-Both": "call", Authorization: "Bearer other" } })
  const { signal: _, ...request } = requests[0]!
  expect(request).toEqual({
    url: "http://127.0.0.1:3000/api/v1/prompts/p",
    method: "GET",
    redirect: "manual",
    headers: {
      accept: "application/json",
      authorization: `Bearer ${key}`,
      "x-app": "one",
      "x-both": "call"
    }
  })
})

/** The response of the service to an attempt of a call. An empty `retryAfter` stands for no `Retry-After`. */
interface Attempt {
  readonly response: number | "refused" | "never"
  readonly retryAfter: string
}

interface Scenario {
  readonly attempts: ReadonlyArray<Attempt>
  readonly timeout: number
  readonly maxRetries: number
  readonly random: number
}

/** Predicts how a call ends, how many requests the call sends, and how long the call takes. */
const predict = ({ attempts, timeout, maxRetries, random }: Scenario) => {
  let took = 0
  for (let requests = 1; ; requests++) {
    const { response, retryAfter } = attempts[Math.min(requests, attempts.length) - 1]!
    if (response === "never") return { end: "TimeoutError", requests, took: timeout }
    const backoff = (Math.min(8_000, 250 * 2 ** requests) * (1 + random)) / 2
    // The client waits for at most one minute, and ignores a `Retry-After` that does not consist of digits.
    const isValid = response !== "refused" && /^\d+$/.test(retryAfter)
    const delay = isValid ? Math.min(Number(retryAfter) * 1_000, 60_000) : backoff
    const isTransient = response === "refused" || response === 408 || response === 429 || response >= 500
    if (!isTransient || requests > maxRetries || took + delay >= timeout)
      return { end: response === "refused" ? "ConnectionError" : response, requests, took }
    took += delay
  }
}

const times = "Thu, 01 Jan 2026 00:00:09 GMT"
const attempt: Arbitrary.Arbitrary<Attempt> = Arbitrary.map(
  Arbitrary.all([
    oneOf<Attempt["response"]>(200, 400, 404, 408, 429, 429, 431, 500, 503, 599, "refused", "never"),
    oneOf("", "", "0", "17", "999999999999999", "-5", "1.5", "1e3", times)
  ]),
  ([response, retryAfter]) => ({ response, retryAfter })
)

effectIt.live.prop(
  "a call retries after each transient failure until maxRetries or the timeout, and waits for Retry-After or an exponential backoff",
  {
    attempts: Arbitrary.array(attempt, { minLength: 1, maxLength: 4 }),
    timeout: oneOf(200, 700, 1_000, 30_000, 61_000, 200_000),
    maxRetries: oneOf(0, 1, 2, 5),
    random: oneOf(0, 0.5, 0.96)
  },
  (scenario) =>
    Effect.promise(async () => {
      installFakeTime()
      vi.spyOn(Math, "random").mockReturnValue(scenario.random)
      const responders = scenario.attempts.map(({ response, retryAfter }): Responder => {
        if (response === "never") return neverResponds
        if (response === "refused") return connectionRefused
        if (response === 200) return ok
        return () => errorResponse(response, "CODE", "No", retryAfter ? { "retry-after": retryAfter } : {})
      })
      const { timeout, maxRetries } = scenario
      const { client, requests } = makeScriptedClient(responders, { timeout: 500_000, maxRetries })
      const outcome = await settle(client.prompts.get("p", { timeout }))
      const error = ("error" in outcome ? outcome.error : { status: 200 }) as Error & { status?: number }
      const actual = { end: error.status ?? error.name, requests: requests.length, took: outcome.took }
      expect(actual).toEqual(predict(scenario))
    }),
  { arbitrary: { runs: 500 } }
)

it("by default, a call ends after two retries or after 30 s, even if fetch ignores its signal, and a late response starts no further request", async () => {
  const response = Promise.withResolvers<Response>()
  const { client, requests } = makeScriptedClient([
    serviceUnavailable,
    serviceUnavailable,
    () => response.promise
  ])
  const outcome = await settle(client.prompts.get("p"))
  expect(outcome).toMatchObject({ error: { name: "TimeoutError" }, took: 30_000 })
  response.resolve(serviceUnavailable())
  await advance(60_000)
  expect(requests).toHaveLength(3)
  const failing = makeScriptedClient([serviceUnavailable])
  expect(await captureError(failing.client.prompts.get("p"))).toMatchObject({ status: 503 })
  expect(failing.requests).toHaveLength(3)
})

it("a 429 pauses every call of the client, but no call of another client, and each paused call logs a warning", async () => {
  const { client, requests, log } = makeScriptedClient([() => rateLimited("10"), ok])
  const other = makeScriptedClient([ok])
  const all = [client.prompts.get("a")]
  await advance(10)
  all.push(client.prompts.get("b"), client.prompts.get("c", { maxRetries: 0 }))
  expect(await settle(other.client.prompts.get("d"))).toEqual({ value: envelope, took: 0 })
  await advance(9_989)
  expect(requests).toHaveLength(1)
  await advance(1)
  expect(await Promise.all(all)).toEqual([envelope, envelope, envelope])
  expect(requests.map(({ url }) => url.slice(-1))).toEqual(["a", "a", "b", "c"])
  expect(log.slice(0, 3).map(([level, message]) => `${level}: ${message}`)).toEqual([
    "warn: GET /api/v1/prompts/a 429",
    "warn: GET /api/v1/prompts/b waits for the rate limit",
    "warn: GET /api/v1/prompts/c waits for the rate limit"
  ])
})

it("a call rejects immediately, without a request, if it would time out during the pause after a 429", async () => {
  const { client, requests } = makeScriptedClient([() => rateLimited("50"), ok])
  await captureError(client.prompts.get("a"))
  await advance(7_500)
  const error = await captureError(client.prompts.get("b"))
  expect({ ...error, name: error.name, message: error.message }).toEqual({
    name: "RateLimitedError",
    status: 429,
    code: "RATE_LIMITED",
    message: "Rate limit exceeded; no request was sent",
    requestId: "req-429",
    retryAfter: 43
  })
  expect(requests).toHaveLength(1)
  await advance(42_500)
  expect(await settle(client.prompts.get("b"))).toEqual({ value: envelope, took: 0 })
})

const aborts: Readonly<Record<string, Responder>> = {
  "before the response": neverResponds,
  "while the body is read": ({ signal }) =>
    new Response(
      new ReadableStream({
        start: (stream) => signal.addEventListener("abort", () => stream.error(signal.reason))
      })
    ),
  "while waiting to retry": () => rateLimited("20"),
  "when fetch ignores its signal": () => new Promise(() => {})
}

it.each(Object.keys(aborts))(
  "a call rejects immediately with an AbortError and logs no warning when its signal is aborted: %s",
  async (kind) => {
    const { client, requests, log } = makeScriptedClient([aborts[kind]!])
    const controller = new AbortController()
    const call = client.prompts.get("p", { signal: controller.signal })
    await flush()
    controller.abort("why not")
    const error = new AbortError("The call was aborted", { cause: "why not" })
    expect(await settle(call)).toEqual({ error, took: 0 })
    await advance(60_000)
    expect(requests).toHaveLength(1)
    expect(vi.getTimerCount()).toBe(0)
    expect(log.filter(([level, message]) => level === "warn" && !message.includes("429"))).toEqual([])
  }
)

it("every method rejects with an AbortError and sends no request if the signal is already aborted", async () => {
  const { client, requests } = makeScriptedClient([ok])
  const error = new AbortError("The call was aborted", { cause: "gone" })
  for (const call of allCalls)
    expect(await captureError(call(client, { signal: AbortSignal.abort("gone") }))).toEqual(error)
  expect(requests).toEqual([])
})

it("the client logs each attempt, even if the logger throws: at warn after a transient failure, and otherwise at debug", async () => {
  vi.spyOn(Math, "random").mockReturnValue(0)
  const log: Array<unknown> = []
  const toLogger = (level: string) => (message: string, fields: object) => {
    log.push([level, message, fields])
    throw new Error("disk full")
  }
  const responders = [connectionRefused, serviceUnavailable, ok, () => errorResponse(404)]
  const logger = { debug: toLogger("debug"), warn: toLogger("warn") }
  const { client } = makeScriptedClient(responders, { logger })
  const ignore = () => {}
  await settle(client.prompts.list({ tag: "secret" }).catch(ignore))
  await settle(client.prompts.get("p").catch(ignore))
  const toLine = (level: string, path: string, outcome: string, fields: object) => [
    level,
    `GET ${path} ${outcome}`,
    { method: "GET", path, duration: 0, ...fields }
  ]
  expect(log).toEqual([
    toLine("warn", "/api/v1/prompts", "without a response", { attempt: 1 }),
    toLine("warn", "/api/v1/prompts", "503", { status: 503, requestId: "req-503", attempt: 2 }),
    toLine("debug", "/api/v1/prompts", "200", { status: 200, requestId: "req-200", attempt: 3 }),
    toLine("debug", "/api/v1/prompts/p", "404", { status: 404, attempt: 1 })
  ])
})
