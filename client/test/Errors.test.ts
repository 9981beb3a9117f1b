import { inspect } from "node:util"
import { describe, expect, it } from "vitest"
import { errors } from "../../src/adapters/inbound/contract/Errors.ts"
import * as Client from "../src/index.ts"
import {
  allCalls,
  captureError,
  connectionRefused,
  errorResponse,
  jsonResponse,
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

/** Returns the name of the error class for an error code: `NotFoundError` for `NOT_FOUND`. */
const toClassName = (code: string): string =>
  code === "INTERNAL_ERROR"
    ? "InternalServerError"
    : `${code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Error`

describe("an error response", () => {
  it.each(Object.values(errors).map(({ status, code }) => ({ status, code })))(
    "a call rejects with the error class for $code and with the status $status, code, requestId and retryAfter of the response",
    async ({ status, code }) => {
      const headers = { "retry-after": "7", "x-request-id": "req-1" }
      const error = await captureResponseError(() => errorResponse(status, code, "What happened", headers))
      const name = toClassName(code)
      expect(error.constructor).toBe(new Map<string, unknown>(Object.entries(Client)).get(name))
      for (const Class of [Client.PromptApiError, Client.PromptClientError])
        expect(error).toBeInstanceOf(Class)
      expect({ ...error, name: error.name, message: error.message }).toEqual({
        name,
        message: "What happened",
        status,
        code,
        requestId: "req-1",
        retryAfter: 7
      })
      expect(error.stack).toMatch(`${name}: What happened\n`)
      expect(error).toMatchObject({ documentation: `docs/http-api.md#${code.toLowerCase()}` })
    }
  )

  it.each(["TEAPOT", "__proto__", "constructor", ""])(
    "an error response with the unknown code %j rejects the call with a PromptApiError",
    async (code) => {
      const error = await captureResponseError(() => errorResponse(418, code, "Short and stout"))
      expect(error.constructor).toBe(Client.PromptApiError)
      const details = {
        status: 418,
        code,
        message: "Short and stout",
        documentation: "docs/http-api.md#errors"
      }
      expect(error).toMatchObject(details)
    }
  )

  it("the message of a ConnectionError names the URL of the service and the message or the code of each cause", async () => {
    const cause = Object.assign(new AggregateError([], ""), { code: "ECONNREFUSED" })
    const error = await captureResponseError(() => {
      throw new TypeError("fetch failed", { cause })
    })
    expect(error.message).toBe("No response from http://127.0.0.1:3000: fetch failed: ECONNREFUSED")
  })
})

describe("a response that is not from the service", () => {
  const respond =
    (
      status: number,
      body: string | null,
      headers: Record<string, string> = { "content-type": "application/json" }
    ) =>
    () =>
      new Response(body, { status, headers: { ...headers, "x-request-id": "req-page" } })
  const bodies = ["", "{", "null", "7", '"data"', "[]", "{}", '{"data":null}', '{"data":7}', '{"error":{}}']
  const foreign: ReadonlyArray<readonly [() => Response, reason: string]> = [
    [page(200) as () => Response, "200 text/html"],
    [page(502) as () => Response, "502 text/html"],
    [respond(304, null, {}), "304 without a content type"],
    [respond(200, '{"error":{"code":"NOT_FOUND","message":"Prompt not found"}}'), "200 application/json"],
    [respond(404, '{"error":{"code":404,"message":["no"]}}'), "404 application/json"],
    [respond(307, null, { location: "http://x.test/" }), "307 redirect; set baseUrl to its target"],
    ...bodies.flatMap((body) =>
      [200, 400].map((status) => [respond(status, body), `${status} application/json`] as const)
    )
  ]

  it("every method rejects with an InvalidResponseError for a response of another server, and retries only if the status is at least 500", async () => {
    for (const [respond, reason] of foreign)
      for (const call of allCalls) {
        const { client, requests } = makeScriptedClient([respond])
        const error = await captureError(call(client))
        const { status } = respond()
        expect(requests).toHaveLength(status < 500 ? 1 : 3)
        expect({ ...error, name: error.name, message: error.message }).toEqual({
          name: "InvalidResponseError",
          message: `Unexpected response: ${reason}`,
          status,
          requestId: "req-page"
        })
      }
  })

  const meta = { page: 1, per_page: 20, total: 1 }
  const [list, get, getResolved, listVersions, getVersion] = allCalls

  it("a list method rejects with an InvalidResponseError if the body is not a page, and any other method if the body is a page", async () => {
    const invalid: ReadonlyArray<readonly [body: object, calls: typeof allCalls]> = [
      ...[
        { data: [] },
        { data: {}, meta },
        { data: [null], meta },
        { data: [], meta: null },
        { data: [], meta: { ...meta, total: "1" } },
        { data: [], meta: { ...meta, per_page: 0 } }
      ].map((body) => [body, [list!, listVersions!]] as const),
      [{ data: [], meta }, [get!, getResolved!, getVersion!]]
    ]
    for (const [body, calls] of invalid)
      for (const call of calls) {
        const { client } = makeScriptedClient([() => jsonResponse(200, body)])
        expect(await captureError(call(client))).toBeInstanceOf(Client.InvalidResponseError)
      }
  })
})

describe("the API key", () => {
  const inspectAll = (value: unknown) =>
    inspect(value, { depth: 20, showHidden: true, getters: true }) + JSON.stringify(value)

  it("util.inspect and JSON.stringify of a client do not show the API key", () => {
    const { client } = makeScriptedClient([connectionRefused], { cache: {} })
    expect(inspectAll(client)).not.toContain(key.slice(9, 25))
    expect(inspectAll(client)).toContain("getResolved")
  })

  it("errors and log lines do not contain the API key, even if a response or a failure repeats the key", async () => {
    const fail = (error: unknown) => () => {
      throw error
    }
    const headers = { authorization: `Bearer ${key}` }
    const responders: ReadonlyArray<Responder> = [
      () => errorResponse(400, key, `Bad key ${key}`, { "x-request-id": key }),
      () => errorResponse(429, "RATE_LIMITED", key, { "retry-after": "600", "x-request-id": key }),
      () => new Response(key, { status: 502, headers: { "content-type": key, "x-request-id": key } }),
      () => new Response(null, { status: 302, headers: { location: `http://x.test/?${key}` } }),
      fail(new Error(`cannot send ${JSON.stringify(headers)}`, { cause: { headers } })),
      fail(Object.assign(new Error("no"), { config: { headers } })),
      fail({ headers }),
      () => {
        const body = new ReadableStream({ start: (stream) => stream.error(new Error(`torn at ${key}`)) })
        return new Response(body, { headers: { "content-type": "application/json", "x-request-id": key } })
      }
    ]
    for (const respond of responders) {
      const { client, log, requests } = makeScriptedClient([respond], { maxRetries: 1 })
      const error = await captureError(client.prompts.list({ tag: key }))
      expect(error).toBeInstanceOf(Client.PromptClientError)
      // During the pause after a 429, the error of a call repeats the request id of the 429.
      const paused = await captureError(client.prompts.list({ tag: key }))
      for (const value of [error, paused, log])
        expect(inspectAll(value) + (value as Error).stack).not.toContain(key.slice(9, 25))
      expect(log.length).toBe(requests.length)
    }
  })
})
