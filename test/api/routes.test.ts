import { expect, it } from "vitest"
import { newId, sample } from "../support/archives.ts"
import { getHeader } from "../support/clients/rawHttp.ts"
import {
  expectCommonHeaders,
  expectError,
  expectSuccess,
  generatedRequestId,
  methodNotAllowed,
  promptNotFound,
  routeNotFound,
  versionNotFound
} from "./expectations.ts"
import { authorize, startApi } from "./startApi.ts"

const home = sample()
const authorization = authorize(home.keys.active.plaintext)
const other = sample()
const { id, current_version } = home.archive.prompts[0]!
const prompt = `/api/v1/prompts/${id}`
const api = startApi([home.archive, other.archive])

it.each([
  ...["/api", "/api/v1", "/api/v1/", "/api/v2/prompts", "/api/v1/prompts/", "/api/v1//prompts"],
  ...["//api/v1/prompts", "/API/v1/prompts", "/api/v1/Prompts", "/api/v1/prompts;page=2"],
  ...["/api/v1/prompt%73", "/api/v1/prompts#top", "/api/v1/prompts/%00", "/api/v1/prompts/%"],
  ...["/api/v1/prompts//resolved", "/api/v1/prompts/../prompts", "/./api/v1/prompts"],
  ...["%2Fresolved", "/", "/resolved/", "/Resolved", "/versions/1/", "/versions//", "/unknown"].map(
    (end) => `/api/v1/prompts/${newId()}${end}`
  ),
  ...["*", "ftp://localhost/api/v1/prompts", "http://localhost"],
  ...["/healthz/", "/openapi.json/", "/docs//", "//", "/Readyz"]
])("%s returns 404 for every method, with and without a key", async (target) => {
  for (const method of ["GET", "POST", "OPTIONS"])
    for (const lines of [[], [authorization]])
      expectError(await api.send(target, lines, method), routeNotFound)
})

it("CONNECT returns 404, because its target is not a path", async () => {
  expectError(await api.send("localhost:443", [], "CONNECT"), routeNotFound)
})

it.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])(
  "%s returns 405 with Allow on every route, with and without a key",
  async (method) => {
    const preflight = ["Origin: https://else.where", "Access-Control-Request-Method: GET"]
    for (const target of ["/api/v1/prompts", `${prompt}/versions/1`, "/healthz"])
      for (const lines of [[], [authorization], preflight])
        expectError(await api.send(target, lines, method), methodNotAllowed)
  }
)

it.each(["/healthz", "/readyz"])(
  "GET %s needs no key, and its response has Cache-Control: no-store",
  async (target) => {
    const response = await api.send(target, [])
    expectCommonHeaders(response)
    expect({ status: response.status, body: response.body }).toEqual({ status: 200, body: '{"status":"ok"}' })
    expect(getHeader(response, "cache-control")).toBe("no-store")
  }
)

it.each([
  ["the id of another workspace's prompt", other.archive.prompts[0]!.id],
  ["an id that no prompt has", newId()],
  ["an id without dashes", id.replaceAll("-", "")],
  ["an id that is not a UUID", "x"]
])(
  'for %s, the endpoint of a version returns 404 "Version not found", and the other endpoints with an id 404 "Prompt not found"',
  async (_, promptId) => {
    const target = `/api/v1/prompts/${promptId}`
    for (const end of ["", "/resolved", "/versions"])
      expectError(await api.send(target + end, [authorization]), promptNotFound)
    for (const version of ["1", "2", "x"])
      expectError(await api.send(`${target}/versions/${version}`, [authorization]), versionNotFound)
  }
)

it("GET /prompts/{id}/versions/{version} returns 404 for a number that no version of the prompt has", async () => {
  for (const version of ["0", "4", "01", "2147483648", "x"])
    expectError(await api.send(`${prompt}/versions/${version}`, [authorization]), versionNotFound)
})

it("cookies, cross-site headers, Accept, Range and query parameters do not change the response of GET /prompts/{id}", async () => {
  const plain = await api.send(prompt, [authorization])
  const response = await api.send(`${prompt}?page=0&per_page=x&type=`, [
    authorization,
    "Cookie: session=1; csrf=2",
    "Origin: https://else.where",
    "Referer: https://else.where/",
    "Sec-Fetch-Site: cross-site",
    "Accept: text/html",
    "Accept-Encoding: gzip",
    "Range: bytes=0-1"
  ])
  expectSuccess(response, undefined, current_version)
  expect(response.body).toBe(plain.body)
  expect(getHeader(response, "etag")).toBe(getHeader(plain, "etag"))
})

it("a response repeats a valid X-Request-Id of the request, and replaces an invalid X-Request-Id with a generated id", async () => {
  const read = async (target: string, id: string) =>
    getHeader(await api.send(target, [authorization, `X-Request-Id: ${id}`]), "x-request-id")
  for (const id of ["a", "A-z_0.9", "x".repeat(128)])
    for (const target of ["/api/v1/prompts", "/nowhere", "/healthz"]) expect(await read(target, id)).toBe(id)
  for (const id of ["", "a b", "x".repeat(129), "\u00e9", "a,b", "<script>"])
    expect(await read("/nowhere", id)).toMatch(generatedRequestId)
})
