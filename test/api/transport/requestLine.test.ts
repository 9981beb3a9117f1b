import { expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { exchange, exchangeAll, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import {
  badRequest,
  malformedHeader,
  expectError,
  headersTooLarge,
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
  ["with two lengths", withHeaders("Host: a", "Content-Length: 1", "Content-Length: 2"), badRequest],
  ["with an unknown coding", withHeaders("Host: a", "Transfer-Encoding: gzip, chunked"), badRequest],
  ["with a space in the name of a header", withHeaders("Host: a", "A b: c"), malformedHeader],
  [
    "with an API key of two lines",
    withHeaders("Host: a", authorization, "This key is shown only once"),
    malformedHeader
  ],
  ["with an unknown expectation", withHeaders("Host: a", "Expect: a-miracle"), unknownExpectation]
])("a request %s gets an error that describes the problem", async (_, request, expected) => {
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

it("a request with headers or a target of 15 KB is not rejected because of its size", async () => {
  const padding = "a".repeat(15_000)
  expect((await api.send(prompt, [authorization, `X: ${padding}`])).status).toBe(200)
  expectError(await api.send(`/${padding}`, []), routeNotFound)
})

it("garbage behind a pending request closes the connection without any response", async () => {
  const responses = await exchangeAll(
    port(),
    `GET ${prompt} HTTP/1.1\r\nHost: a\r\n${authorization}\r\n\r\nGARBAGE\r\n\r\n`
  )
  expect(responses).toEqual([])
})

it("pipelined requests get their responses in order, even if the last one has an unread body and gets 304", async () => {
  const ids = Array.from({ length: 50 }, (_, i) => `id-${i}`)
  const requests = ids.map((id, i) => {
    const target = i % 3 === 0 ? `${prompt}?${id}` : "/nowhere"
    return `GET ${target} HTTP/1.1\r\nHost: a\r\n${authorization}\r\nX-Request-Id: ${id}\r\n\r\n`
  })
  const last = rawRequest("/docs", ["X-Request-Id: last", "If-None-Match: *", "Content-Length: 3"])
  const responses = await exchangeAll(port(), `${requests.join("")}${last}abc`)
  expect(responses.map((response) => getHeader(response, "x-request-id"))).toEqual([...ids, "last"])
  expect(responses.map(({ status }) => status)).toEqual([
    ...ids.map((_, i) => (i % 3 === 0 ? 200 : 404)),
    304
  ])
})

it("a malformed body gets no second response if the request already has a response, and is not read as the next request", async () => {
  const head = rawRequest("/healthz", ["Transfer-Encoding: chunked"]).replace("Connection: close\r\n", "")
  const post = "POST /api/v1/prompts HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET "
  for (const [request, status] of [
    [`${head}not a chunk\r\n`, 200],
    [post + rawRequest("/healthz"), 405]
  ] as const)
    expect((await exchangeAll(port(), request)).map((response) => response.status)).toEqual([status])
})

it("a request to upgrade the protocol gets an ordinary response, and then the connection closes", async () => {
  const upgrade = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
  const responses = await exchangeAll(port(), upgrade + rawRequest("/healthz"))
  expect(responses.map((response) => [response.status, getHeader(response, "connection")])).toEqual([
    [200, "close"]
  ])
})
