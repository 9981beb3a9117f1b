import { inspect } from "node:util"
import { describe, expect, it } from "vitest"
import { errors } from "../../src/adapters/inbound/contract/Errors.ts"
import * as Client from "../src/index.ts"
import {
  allCalls,
  captureError,
  connectionRefused,
  errorResponse,
  useFakeTime,
  jsonResponse,
  key,
  makeScriptedClient,
  promptId
} from "./support.ts"

useFakeTime()

const noRetries = { maxRetries: 0 }

/** Returns the name of the error class for an error code: `NotFoundError` for `NOT_FOUND`. */
const toClassName = (code: string): string =>
  code === "INTERNAL_ERROR"
    ? "InternalServerError"
    : `${code.toLowerCase().replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase())}Error`

describe("an error response", () => {
  it.each(Object.values(errors).map(({ status, code }) => ({ status, code })))(
    "a call rejects with the error class for $code and with the status $status, code, requestId and retryAfter of the response",
    async ({ status, code }) => {
      const { client } = makeScriptedClient(
        [() => errorResponse(status, code, "What happened", { "retry-after": "7", "x-request-id": "req-1" })],
        noRetries
      )
      const error = await captureError(client.prompts.get(promptId))
      expect(error).toBeInstanceOf(new Map(Object.entries(Client)).get(toClassName(code)))
      expect(error).toBeInstanceOf(Client.PromptApiError)
      expect(error).toBeInstanceOf(Client.PromptClientError)
      expect({ ...error, name: error.name, message: error.message }).toEqual({
        name: toClassName(code),
        message: "What happened",
        status,
        code,
        requestId: "req-1",
        retryAfter: 7
      })
      expect(error.stack).toMatch(`${toClassName(code)}: What happened\n`)
      expect(error).toMatchObject({ documentation: `docs/http-api.md#${code.toLowerCase()}` })
    }
  )

  it.each(["TEAPOT", "__proto__", "constructor", ""])(
    "an error response with the unknown code %j rejects the call with a PromptApiError",
    async (code) => {
      const { client } = makeScriptedClient([() => errorResponse(418, code, "Short and stout")])
      const error = await captureError(client.prompts.get(promptId))
      expect(error.constructor).toBe(Client.PromptApiError)
      expect(error).toMatchObject({ documentation: "docs/http-api.md#errors" })
      expect({ ...error, message: error.message }).toEqual({
        status: 418,
        code,
        message: "Short and stout",
        requestId: undefined,
        retryAfter: undefined
      })
    }
  )
})

const html = (status: number): Response =>
  new Response("<html>secret</html>", {
    status,
    headers: { "content-type": "text/html", "x-request-id": "r" }
  })
const text = (status: number, body: string, type = "application/json"): Response =>
  new Response(body, { status, headers: { "content-type": type, "x-request-id": "r" } })

describe("a response that is not from the service", () => {
  const bodies = ["", "{", "null", "7", '"data"', "[]", "{}", '{"data":null}', '{"data":7}', '{"error":{}}']
  const foreign: ReadonlyArray<readonly [() => Response, reason: string]> = [
    [() => html(200), "200 text/html"],
    [() => html(502), "502 text/html"],
    [() => new Response("{}", { headers: { "content-type": "", "x-request-id": "r" } }), "200 "],
    [
      () => new Response(null, { status: 304, headers: { "x-request-id": "r" } }),
      "304 without a content type"
    ],
    [() => text(200, '{"error":{"code":"NOT_FOUND","message":"Prompt not found"}}'), "200 application/json"],
    [() => text(404, '{"error":{"code":404,"message":["no"]}}'), "404 application/json"],
    [
      () => new Response(null, { status: 307, headers: { location: "http://x.test/", "x-request-id": "r" } }),
      "307 redirect; set baseUrl to its target"
    ],
    ...bodies.flatMap((body) =>
      [200, 400].map((status) => [() => text(status, body), `${status} application/json`] as const)
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
          requestId: "r"
        })
      }
  })

  const meta = { page: 1, per_page: 20, total: 1 }
  it("a list method rejects with an InvalidResponseError if the body is not a valid page", async () => {
    for (const body of [
      { data: [] },
      { data: {}, meta },
      { data: [null], meta },
      { data: [], meta: null },
      { data: [], meta: { ...meta, total: "1" } },
      { data: [], meta: { ...meta, per_page: 0 } }
    ]) {
      const { client } = makeScriptedClient([() => jsonResponse(200, body)])
      for (const list of [() => client.prompts.list(), () => client.prompts.versions.list(promptId)])
        expect(await captureError(list())).toBeInstanceOf(Client.InvalidResponseError)
    }
  })

  it("a method for a single resource rejects with an InvalidResponseError if the body is a page of a list", async () => {
    const { client } = makeScriptedClient([() => jsonResponse(200, { data: [], meta })])
    for (const call of [allCalls[1]!, allCalls[2]!, allCalls[4]!]) {
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
    const responders = [
      () => errorResponse(400, key, `Bad key ${key}`, { "x-request-id": key }),
      () => new Response(key, { status: 502, headers: { "content-type": key, "x-request-id": key } }),
      () => new Response(null, { status: 302, headers: { location: `http://x.test/?${key}` } }),
      () => rateLimited(key),
      ({ headers }: { headers: object }) => {
        throw new Error(`cannot send ${JSON.stringify(headers)}`, { cause: { headers } })
      },
      () => {
        throw Object.assign(new Error("no"), { config: { headers: { authorization: `Bearer ${key}` } } })
      },
      () => {
        throw { headers: { authorization: `Bearer ${key}` } }
      },
      () => {
        const body = new ReadableStream({ start: (stream) => stream.error(new Error(`torn at ${key}`)) })
        return new Response(body, { headers: { "content-type": "application/json", "x-request-id": key } })
      }
    ]
    const rateLimited = (id: string) =>
      errorResponse(429, "RATE_LIMITED", id, { "retry-after": "600", "x-request-id": id })
    for (const respond of responders) {
      const { client, log, requests } = makeScriptedClient([respond], { maxRetries: 1 })
      const error = await captureError(client.prompts.list({ tag: key }))
      expect(error).toBeInstanceOf(Client.PromptClientError)
      // During the pause after a 429, the error of a call repeats the request id of the 429.
      const paused = await captureError(client.prompts.list({ tag: key }))
      for (const value of [error, paused, log]) {
        expect(inspectAll(value) + (value as Error).stack).not.toContain(key.slice(9, 25))
      }
      expect(log.length).toBe(requests.length)
    }
  })

  it.each([
    [undefined, "apiKey is missing; set the environment variable PROMPT_RETRIEVAL_KEY"],
    [null, "apiKey is missing; set the environment variable PROMPT_RETRIEVAL_KEY"],
    ["", "apiKey is missing; set the environment variable PROMPT_RETRIEVAL_KEY"],
    [7, "apiKey contains invalid characters"],
    [" ", "apiKey contains invalid characters"],
    ["key live", "apiKey contains invalid characters"],
    ["key\n", "apiKey contains invalid characters"],
    ["clé", "apiKey contains invalid characters"]
  ])("the constructor throws a TypeError that does not repeat an invalid API key: %j", (apiKey, message) => {
    expect(() => new Client.PromptClient({ apiKey: apiKey as string })).toThrow(new TypeError(message))
  })
})
