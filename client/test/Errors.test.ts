import { inspect } from "node:util"
import { expect, it } from "vitest"
import { errors } from "../../src/adapters/inbound/contract/Errors.ts"
import * as Client from "../src/index.ts"
import {
  allCalls,
  captureError,
  connectionRefused,
  errorResponse,
  key,
  makeScriptedClient,
  page,
  type Responder,
  useFakeTime
} from "./support.ts"

useFakeTime()

/** Returns the error that a client gets for a response. */
const captureResponseError = (respond: Responder) =>
  captureError(makeScriptedClient([respond], { maxRetries: 0 }).client.prompts.get("p"))

const fail = (error: unknown) => () => {
  throw error
}
const describeError = (error: Error) => ({ ...error, name: error.name, message: error.message })

/** Returns the name of the error class for an error code: `NotFoundError` for `NOT_FOUND`. */
const toClassName = (code: string): string =>
  code === "INTERNAL_ERROR"
    ? "InternalServerError"
    : `${code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Error`

const unknownCodes = ["TEA", "NOTFOUND", "not_found", "INTERNAL_SERVER", "__proto__", "constructor", ""]
const unknown = unknownCodes.map((code) => ({ status: 418, code, name: "PromptApiError" }))
const known = Object.values(errors).map(({ status, code }) => ({ status, code, name: toClassName(code) }))

it.each([...known, ...unknown])(
  "the error of a call has the class of the code $code (PromptApiError if unknown), and the status, code, requestId and retryAfter of the response",
  async ({ status, code, name }) => {
    const headers = { "retry-after": "7", "x-request-id": "req-1" }
    const error = await captureResponseError(() => errorResponse(status, code, "What happened", headers))
    expect(error.constructor).toBe(new Map<string, unknown>(Object.entries(Client)).get(name))
    for (const Class of [Client.PromptApiError, Client.PromptClientError]) expect(error).toBeInstanceOf(Class)
    const details = { status, code, message: "What happened", requestId: "req-1", retryAfter: 7 }
    expect(describeError(error)).toEqual({ name, ...details })
    expect(error.stack).toMatch(`${name}: What happened\n`)
    const documentation = `docs/http-api.md#${name === "PromptApiError" ? "errors" : code.toLowerCase()}`
    for (const each of [error, new Client.PromptApiError(details), new Client.NotFoundError(details)])
      expect(each).toMatchObject({ documentation })
  }
)

it("the client exports the error class of each code, the other documented classes and functions, and no other value", () => {
  const others =
    "AbortError BundleError ConnectionError InvalidResponseError MissingVariablesError PromptApiError " +
    "PromptClient PromptClientError TimeoutError fillSlots toMessage traceAttributes verifyBundle"
  const names = [...known.map(({ name }) => name), ...others.split(" ")]
  expect(new Set(Object.keys(Client))).toEqual(new Set(names))
})

it("the message of a ConnectionError names the URL of the service and the message or the code of each cause", async () => {
  const cause = Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" })
  const error = await captureResponseError(fail(new TypeError("fetch failed", { cause })))
  expect(error.message).toBe("No response from http://127.0.0.1:3000: fetch failed: ECONNREFUSED")
})

const json = { "content-type": "application/json" }
const respond =
  (status: number, body: string | null, headers: Record<string, string> = json) =>
  () =>
    new Response(body, { status, headers: { ...headers, "x-request-id": "req-page" } })
const bodies = ["", "{", "null", "7", '"data"', "[]", "{}", '{"data":null}', '{"data":7}', '{"error":{}}']
const meta = { page: 1, per_page: 20, total: 1 }
const notPages = [
  { data: [] },
  { data: {}, meta },
  { data: [null], meta },
  { data: [], meta: null },
  { data: [], meta: { ...meta, total: "1" } },
  { data: [], meta: { ...meta, per_page: 0 } }
]
const [list, get, getResolved, listVersions, getOne] = allCalls
const lists = [list!, listVersions!]
/** Responses that the endpoints of `calls` (by default all endpoints) cannot send, and the reason in the error. */
const foreign: ReadonlyArray<readonly [() => Response, reason: string, calls?: typeof allCalls]> = [
  [page(200), "200 text/html"],
  [page(502), "502 text/html"],
  [respond(304, null, {}), "304 without a content type"],
  [respond(200, '{"error":{"code":"NOT_FOUND","message":"Prompt not found"}}'), "200 application/json"],
  [respond(404, '{"error":{"code":404,"message":["no"]}}'), "404 application/json"],
  [
    respond(404, '{"error":{"code":"NOT_FOUND","message":"Route not found"}}'),
    "404 Route not found; check baseUrl"
  ],
  [respond(307, null, { location: "http://x.test/" }), "307 redirect; set baseUrl to its target"],
  [respond(302, null), "302 redirect; set baseUrl to its target"],
  [respond(502, null, { location: "http://x.test/" }), "502 without a content type"],
  [respond(200, '{"data":{"id":"p"}}'), "200 application/json", [getResolved!]],
  ...bodies.map((body) => [respond(200, body), "200 application/json"] as const),
  ...notPages.map((body) => [respond(200, JSON.stringify(body)), "200 application/json", lists] as const),
  [respond(200, JSON.stringify({ data: [], meta })), "200 application/json", [get!, getResolved!, getOne!]]
]

it("a call rejects with an InvalidResponseError if its endpoint cannot have sent the response, after retries if the status is at least 500", async () => {
  for (const [respond, reason, calls = allCalls] of foreign)
    for (const call of calls) {
      const { client, requests } = makeScriptedClient([respond])
      const error = await captureError(call(client))
      const { status } = respond()
      expect(requests).toHaveLength(status < 500 ? 1 : 3)
      const details = { message: `Unexpected response: ${reason}`, status, requestId: "req-page" }
      expect(describeError(error)).toEqual({ name: "InvalidResponseError", ...details })
    }
})

const inspectAll = (value: unknown) =>
  inspect(value, { depth: 20, showHidden: true, getters: true }) + JSON.stringify(value)

it("util.inspect and JSON.stringify of a client do not show the API key", () => {
  const { client } = makeScriptedClient([connectionRefused], { cache: {} })
  expect(inspectAll(client)).not.toContain(key.slice(9, 25))
  expect(inspectAll(client)).toContain("getResolved")
})

const headers = { authorization: `Bearer ${key}` }
const repeatsKey: Readonly<Record<string, Responder>> = {
  "an error response": () => errorResponse(400, key, `Bad key ${key}`, { "x-request-id": key }),
  "a 429": () => errorResponse(429, "RATE_LIMITED", key, { "retry-after": "600", "x-request-id": key }),
  "the headers of a response": () =>
    new Response(key, { status: 502, headers: { "content-type": key, "x-request-id": key } }),
  "a redirect": () => new Response(null, { status: 302, headers: { location: `http://x.test/?${key}` } }),
  "an error of fetch": fail(new Error(`cannot send ${JSON.stringify(headers)}`, { cause: { headers } })),
  "a property of an error": fail(Object.assign(new Error("no"), { config: { headers } })),
  "a value that is not an error": fail({ headers }),
  "an error in the body": () => {
    const body = new ReadableStream({ start: (stream) => stream.error(new Error(`torn at ${key}`)) })
    return new Response(body, { headers: { "content-type": "application/json", "x-request-id": key } })
  }
}

it.each(Object.keys(repeatsKey))(
  "no error and no log line contains the API key that %s repeats",
  async (kind) => {
    const { client, log, requests } = makeScriptedClient([repeatsKey[kind]!], { maxRetries: 1 })
    const error = await captureError(client.prompts.list({ tag: key }))
    expect(error).toBeInstanceOf(Client.PromptClientError)
    // During the pause after a 429, the error of a call repeats the request id of the 429.
    const paused = await captureError(client.prompts.list({ tag: key }))
    for (const value of [error, paused, log])
      expect(inspectAll(value) + (value as Error).stack).not.toContain(key.slice(9, 25))
    expect(log.length).toBe(requests.length)
  }
)
