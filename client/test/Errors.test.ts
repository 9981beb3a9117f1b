import { inspect } from "node:util"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import * as Client from "../src/index.ts"
import { errors } from "../../src/adapters/inbound/http/Errors.ts"
import { calls, failure, fakeTime, json, key, refusal, refused, scripted, settle } from "./support.ts"

beforeEach(() => void fakeTime())
afterEach(() => void vi.useRealTimers())

const once = { maxRetries: 0 }

/** The class of each code that the service has. */
const classes: Record<string, string> = {
  BAD_REQUEST: "BadRequestError",
  UNAUTHORIZED: "UnauthorizedError",
  DISPUTED: "DisputedError",
  PAST_DUE: "PastDueError",
  API_NOT_ALLOWED: "ApiNotAllowedError",
  NOT_FOUND: "NotFoundError",
  METHOD_NOT_ALLOWED: "MethodNotAllowedError",
  REQUEST_TIMEOUT: "RequestTimeoutError",
  RATE_LIMITED: "RateLimitedError",
  HEADERS_TOO_LARGE: "HeadersTooLargeError",
  INTERNAL_ERROR: "InternalServerError",
  SERVICE_UNAVAILABLE: "ServiceUnavailableError"
}

describe("an error of the service", () => {
  it("has a class for every code of the service's own table, and no other", () => {
    expect(Object.keys(classes).toSorted()).toEqual(
      [...new Set(Object.values(errors).map(({ code }) => code))].toSorted()
    )
  })

  it.each(Object.values(errors).map(({ status, code }) => ({ status, code })))(
    "$status $code is of its class",
    async ({ status, code }) => {
      const { client } = scripted(
        [() => refusal(status, code, "What happened", { "retry-after": "7", "x-request-id": "req-1" })],
        once
      )
      const error = await failure(client.prompts.get("p"))
      expect(error).toBeInstanceOf(new Map(Object.entries(Client)).get(classes[code]!))
      expect(error).toBeInstanceOf(Client.PromptApiError)
      expect(error).toBeInstanceOf(Client.PromptClientError)
      expect({ ...error, name: error.name, message: error.message }).toEqual({
        name: classes[code],
        message: "What happened",
        status,
        code,
        requestId: "req-1",
        retryAfter: 7
      })
      expect(error.stack).toMatch(`${classes[code]}: What happened\n`)
    }
  )

  it.each(["TEAPOT", "__proto__", "constructor", ""])(
    "is of the base with an unknown code: %s",
    async (code) => {
      const { client } = scripted([() => refusal(418, code, "Short and stout")])
      const error = await failure(client.prompts.get("p"))
      expect(error.constructor).toBe(Client.PromptApiError)
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

describe("an answer that is not the service's", () => {
  const strange: Record<string, { readonly answer: () => Response; readonly message: string }> = {
    "a page of HTML": {
      answer: () => html(200),
      message: "The service answered 200 text/html, which is none of its answers"
    },
    "an error page of HTML": {
      answer: () => html(502),
      message: "The service answered 502 text/html, which is none of its answers"
    },
    "the right body with the wrong type": {
      answer: () => text(200, '{"data":{}}', "text/plain"),
      message: "The service answered 200 text/plain, which is none of its answers"
    },
    "no content type": {
      answer: () => new Response(new Uint8Array([123, 125]), { headers: { "x-request-id": "r" } }),
      message: "The service answered 200 without a content type, which is none of its answers"
    },
    "not modified, where nobody asked": {
      answer: () => new Response(null, { status: 304, headers: { "x-request-id": "r" } }),
      message: "The service answered 304 without a content type, which is none of its answers"
    },
    "an error that is none by its status": {
      answer: () => text(200, '{"error":{"code":"NOT_FOUND","message":"Prompt not found"}}'),
      message: "The service answered 200 application/json, which is none of its answers"
    },
    "an error whose parts are no text": {
      answer: () => text(404, '{"error":{"code":404,"message":["no"]}}'),
      message: "The service answered 404 application/json, which is none of its answers"
    },
    ...Object.fromEntries(
      [301, 302, 307, 308].map((status) => [
        `a redirect, ${status}`,
        {
          answer: () =>
            new Response(null, {
              status,
              headers: { location: "http://elsewhere.test/", "x-request-id": "r" }
            }),
          message: `The service answered ${status}, a redirect: set baseUrl to where it leads`
        }
      ])
    ),
    ...Object.fromEntries(
      [
        "",
        "{",
        '{"data":',
        "null",
        "true",
        "7",
        '"data"',
        "[]",
        "{}",
        '{"data":null}',
        '{"data":7}',
        '{"error":{}}',
        '{"error":null}',
        "undefined"
      ].flatMap((body) =>
        [200, 400].map((status) => [
          `${status} ${body}`,
          {
            answer: () => text(status, body),
            message: `The service answered ${status} application/json, which is none of its answers`
          }
        ])
      )
    )
  }

  it.each(Object.keys(strange))("is an InvalidResponseError of every call: %s", async (kind) => {
    const { answer, message } = strange[kind]!
    for (const call of calls) {
      const { client } = scripted([answer], once)
      const error = await failure(call(client))
      expect(error).toBeInstanceOf(Client.InvalidResponseError)
      expect({ ...error, name: error.name, message: error.message }).toEqual({
        name: "InvalidResponseError",
        message,
        status: answer().status,
        requestId: "r"
      })
    }
  })

  const meta = { page: 1, per_page: 20, total: 1 }
  it.each([
    { data: [] },
    { data: {}, meta },
    { data: [1], meta },
    { data: [null], meta },
    { data: [], meta: null },
    { data: [], meta: { ...meta, total: "1" } },
    { data: [], meta: { ...meta, per_page: 0 } },
    { data: [], meta: { page: 1, total: 1 } }
  ])("is one where a list has another shape: %j", async (body) => {
    const { client } = scripted([() => json(200, body)])
    expect(await failure(client.prompts.list())).toBeInstanceOf(Client.InvalidResponseError)
    expect(await failure(client.prompts.versions.list("p"))).toBeInstanceOf(Client.InvalidResponseError)
  })

  it("is one where a single resource is a list", async () => {
    const { client } = scripted([() => json(200, { data: [], meta })])
    for (const call of [calls[1]!, calls[2]!, calls[4]!]) {
      expect(await failure(call(client))).toBeInstanceOf(Client.InvalidResponseError)
    }
  })

  it("is read as JSON whatever the parameters and the case of its type", async () => {
    for (const type of ["application/json; charset=utf-8", "Application/JSON", "application/problem+json"]) {
      const { client } = scripted([() => text(200, '{"data":{"id":"p"}}', type)])
      expect((await settle(client.prompts.get("p"))) as object).toMatchObject({
        value: { data: { id: "p" } }
      })
    }
  })
})

describe("the API key", () => {
  const seen = (value: unknown) =>
    inspect(value, { depth: 20, showHidden: true, getters: true }) + JSON.stringify(value)

  it("is in no view of the client", () => {
    const { client } = scripted([refused], { cache: {} })
    expect(seen(client)).not.toContain(key.slice(9, 25))
    expect(seen(client)).toContain("getResolved")
  })

  it("is in no error and no log line, even where the answer, its headers or the failure repeat it", async () => {
    const replies = [
      () => refusal(400, key, `Bad key ${key}`, { "x-request-id": key }),
      () => new Response(key, { status: 502, headers: { "content-type": key, "x-request-id": key } }),
      () => new Response(null, { status: 302, headers: { location: `http://x.test/?${key}` } }),
      () => limited(key),
      ({ headers }: { headers: object }) => {
        throw new Error(`can't send ${JSON.stringify(headers)}`, { cause: { headers } })
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
    const limited = (id: string) =>
      refusal(429, "RATE_LIMITED", id, { "retry-after": "600", "x-request-id": id })
    for (const reply of replies) {
      const { client, log, requests } = scripted([reply], { maxRetries: 1 })
      const error = await failure(client.prompts.get(key))
      expect(error).toBeInstanceOf(Client.PromptClientError)
      // In the pause after 429, too.
      const paused = await failure(client.prompts.get(key))
      for (const value of [error, paused, log]) {
        expect(seen(value) + (value as Error).stack).not.toContain(key.slice(9, 25))
      }
      expect(log.length).toBe(requests.length)
    }
  })

  it.each(["", " ", "key live", "key\n", "clé", undefined, null, 7])(
    "is refused, and not repeated, where it can't be sent: %j",
    (apiKey) => {
      expect(() => new Client.PromptClient({ apiKey: apiKey as string })).toThrow(
        new TypeError("apiKey must be printable ASCII without spaces")
      )
    }
  )
})
