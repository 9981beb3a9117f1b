import { expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { exchange, exchangeAll, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import {
  badRequest,
  expectError,
  headersTooLarge,
  malformedHeader,
  routeNotFound,
  unknownExpectation
} from "../expectations.ts"
import { authorize, startApi } from "../startApi.ts"

const home = sample()
const authorization = authorize(home.keys.active.plaintext)
const prompt = `/api/v1/prompts/${home.archive.prompts[0]!.id}`
const api = startApi([home.archive])
const port = () => api.service().port

/** Returns the text of a request with exactly these headers. */
const withHeaders = (...lines: ReadonlyArray<string>): string =>
  ["GET /api/v1/prompts HTTP/1.1", ...lines, "Connection: close", "", ""].join("\r\n")

it.each([
  ["without a request line", "GARBAGE\r\n\r\n", badRequest],
  ["with a target without a slash", rawRequest("?page=1"), badRequest],
  ["with a target that is not ASCII", rawRequest("/api/v1/prompts/\u00e9"), badRequest],
  ["with an unknown protocol", "GET / HTTX/1.1\r\nHost: a\r\n\r\n", badRequest],
  ["without Host", withHeaders(), badRequest],
  ["with two Host headers", withHeaders("Host: a", "Host: b"), badRequest],
  [
    "with two Content-Length headers",
    withHeaders("Host: a", "Content-Length: 1", "Content-Length: 2"),
    badRequest
  ],
  ["with an unknown transfer coding", withHeaders("Host: a", "Transfer-Encoding: gzip, chunked"), badRequest],
  ["with a space in the name of a header", withHeaders("Host: a", "A b: c"), malformedHeader],
  [
    "with an API key of two lines",
    withHeaders("Host: a", authorization, "This key is shown only once"),
    malformedHeader
  ],
  ["with an unknown expectation", withHeaders("Host: a", "Expect: a-miracle"), unknownExpectation]
])("a request %s gets the error that describes this problem", async (_, request, expected) => {
  expectError(await exchange(port(), request), expected)
})

it.each([17_000, 64_000])("a request with headers or a target of %i bytes gets 431", async (size) => {
  const padding = "a".repeat(size)
  for (const request of [
    rawRequest("/api/v1/prompts", [`X: ${padding}`]),
    rawRequest("/api/v1/prompts", [`${padding}: x`]),
    rawRequest("/api/v1/prompts", Array(size / 8).fill("X-A: 12")),
    rawRequest(`/api/v1/prompts?x=${padding}`)
  ])
    expectError(await exchange(port(), request), headersTooLarge)
})

it("a request with headers or a target of 15 KB gets its usual response", async () => {
  const padding = "a".repeat(15_000)
  expect((await api.send(prompt, [authorization, `X: ${padding}`])).status).toBe(200)
  expectError(await api.send(`/${padding}`, []), routeNotFound)
})

it("pipelined requests get their responses in order, even if the last request has an unread body and gets 304", async () => {
  const ids = Array.from({ length: 49 }, (_, i) => `id-${i}`)
  const requests = ids.map((id, i) => {
    const target = i % 3 === 0 ? `${prompt}?${id}` : "/nowhere"
    const end = i === ids.length - 1 ? "If-None-Match: *\r\nContent-Length: 3\r\n\r\nabc" : "\r\n"
    return `GET ${target} HTTP/1.1\r\nHost: a\r\n${authorization}\r\nX-Request-Id: ${id}\r\n${end}`
  })
  const responses = await exchangeAll(port(), requests.join(""))
  expect(responses.map((response) => getHeader(response, "x-request-id"))).toEqual(ids)
  const statuses = ids.map((_, i): number => (i % 3 === 0 ? 200 : 404)).with(-1, 304)
  expect(responses.map(({ status }) => status)).toEqual(statuses)
})

const [head, next] = ["HTTP/1.1\r\nHost: a\r\n", rawRequest("/healthz")]
it.each([
  ["garbage", `GET ${prompt} ${head}${authorization}\r\n\r\nGARBAGE\r\n\r\n`, []],
  ["garbage behind an unread body", `POST /docs ${head}Content-Length: 2\r\n\r\n{"a":1}`, [405]],
  ["a malformed body", `GET /docs ${head}Transfer-Encoding: chunked\r\n\r\nx\r\n`, [200]],
  ["a request behind an unread body", `POST /docs ${head}Content-Length: 4\r\n\r\nGET ${next}`, [405]],
  ["a request behind an upgrade", `GET /docs ${head}Connection: Upgrade\r\nUpgrade: b\r\n\r\n${next}`, [200]]
])("the service sends no response to %s, and closes the connection", async (_, request, statuses) => {
  expect((await exchangeAll(port(), request)).map(({ status }) => status)).toEqual(statuses)
})
