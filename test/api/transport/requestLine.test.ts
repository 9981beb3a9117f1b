import { expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { exchange, exchangeAll, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import {
  badRequest,
  malformedHeader,
  expectError,
  expectSuccess,
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

it.each([
  ["without a request line", "GARBAGE\r\n\r\n"],
  ["with a target without a slash", rawRequest("?page=1")],
  ["with a target that is not ASCII", rawRequest("/api/v1/prompts/\u00e9")],
  ["with an unknown protocol", "GET / HTTX/1.1\r\nHost: a\r\n\r\n"],
  ["without Host", "GET /api/v1/prompts HTTP/1.1\r\nConnection: close\r\n\r\n"],
  [
    "with two Host headers",
    "GET /api/v1/prompts HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n"
  ],
  [
    "with two Content-Length headers",
    "GET /api/v1/prompts HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"
  ],
  [
    "with a Content-Length that is not a number",
    "GET /api/v1/prompts HTTP/1.1\r\nHost: a\r\nContent-Length: x\r\n\r\n"
  ]
])("a request %s gets 400", async (_, request) => {
  expectError(await exchange(port(), request), badRequest)
})

it.each([
  ["with a space in the name of a header", "A b: c"],
  ["with an API key of two lines", `${authorization}\r\nThis key is shown only once`]
])("a request %s gets 400 with a message about a malformed header", async (_, header) => {
  const request = `GET /api/v1/prompts HTTP/1.1\r\nHost: a\r\n${header}\r\nConnection: close\r\n\r\n`
  expectError(await exchange(port(), request), malformedHeader)
})

it.each(["gzip", "xchunked", "gzip, chunked", "identity"])(
  "a request with Transfer-Encoding: %s gets 400",
  async (coding) => {
    const response = await api.send("/api/v1/prompts", [authorization, `Transfer-Encoding: ${coding}`])
    expectError(response, badRequest)
  }
)

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

it("a request with an unknown expectation gets 417", async () => {
  expectError(await api.send("/api/v1/prompts", [authorization, "Expect: a-miracle"]), unknownExpectation)
})

it("garbage behind a pending request closes the connection without any response", async () => {
  const responses = await exchangeAll(
    port(),
    `GET ${prompt} HTTP/1.1\r\nHost: a\r\n${authorization}\r\n\r\nGARBAGE\r\n\r\n`
  )
  expect(responses).toEqual([])
})

it("pipelined requests get their responses in order", async () => {
  const ids = Array.from({ length: 50 }, (_, i) => `id-${i}`)
  const requests = ids.map((id, i) => {
    const target = i % 3 === 0 ? `${prompt}?${id}` : "/nowhere"
    const last = i === ids.length - 1 ? "Connection: close\r\n" : ""
    return `GET ${target} HTTP/1.1\r\nHost: a\r\n${authorization}\r\nX-Request-Id: ${id}\r\n${last}\r\n`
  })
  const responses = await exchangeAll(port(), requests.join(""))
  expect(responses.map((response) => getHeader(response, "x-request-id"))).toEqual(ids)
  expect(responses.map(({ status }) => status)).toEqual(ids.map((_, i) => (i % 3 === 0 ? 200 : 404)))
})

it("a malformed body gets no second response if the request already has a response", async () => {
  const head = rawRequest("/healthz", ["Transfer-Encoding: chunked"]).replace("Connection: close\r\n", "")
  const responses = await exchangeAll(port(), `${head}not a chunk\r\n`)
  expect(responses.map(({ status }) => status)).toEqual([200])
})

it("the body of a request with a disallowed method is not read as the next request", async () => {
  const request = `POST /api/v1/prompts HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nGET ${rawRequest("/healthz")}`
  const responses = await exchangeAll(port(), request)
  expect(responses.map(({ status }) => status)).toEqual([405])
})

it("a request to upgrade the protocol gets an ordinary response, and then the connection closes", async () => {
  const upgrade = "GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
  const responses = await exchangeAll(port(), upgrade + rawRequest("/healthz"))
  expect(responses.map((response) => [response.status, getHeader(response, "connection")])).toEqual([
    [200, "close"]
  ])
})

it("an HTTP/1.0 request needs no Host header", async () => {
  expectSuccess(await exchange(port(), `GET /api/v1/prompts HTTP/1.0\r\n${authorization}\r\n\r\n`))
})
