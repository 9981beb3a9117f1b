import { expect, it } from "vitest"
import { newId, sample } from "../support/archives.ts"
import { getHeader, type HttpResponse } from "../support/clients/rawHttp.ts"
import { expectCommonHeaders, expectError, methodNotAllowed, routeNotFound } from "./expectations.ts"
import { authorize, startApi } from "./startApi.ts"

const home = sample()
const authorization = authorize(home.keys.active.plaintext)
const prompt = `/api/v1/prompts/${home.archive.prompts[0]!.id}`
const api = startApi([home.archive])

it.each([
  "/api",
  "/api/v1",
  "/api/v1/",
  "/api/v2/prompts",
  "/api/v1/prompts/",
  "/api/v1//prompts",
  "//api/v1/prompts",
  "/API/v1/prompts",
  "/api/v1/Prompts",
  "/api/v1/prompts;page=2",
  "/api/v1/prompt%73",
  "/api/v1/prompts#top",
  "/api/v1/prompts/%00",
  "/api/v1/prompts/%",
  `/api/v1/prompts/${"a".repeat(36)}%2Fresolved`,
  "/api/v1/prompts//resolved",
  `/api/v1/prompts/${newId()}/`,
  `/api/v1/prompts/${newId()}/resolved/`,
  `/api/v1/prompts/${newId()}/Resolved`,
  `/api/v1/prompts/${newId()}/versions/1/`,
  `/api/v1/prompts/${newId()}/versions//`,
  `/api/v1/prompts/${newId()}/fragments`,
  "/api/v1/prompts/../prompts",
  "/./api/v1/prompts",
  "*",
  "ftp://localhost/api/v1/prompts",
  "http://localhost",
  "/healthz/",
  "/openapi.json/",
  "/docs//",
  "//",
  "/Readyz"
])("%s returns 404 for every method, with and without a key", async (target) => {
  for (const method of ["GET", "POST", "OPTIONS"])
    for (const lines of [[], [authorization]])
      expectError(await api.send(target, lines, method), routeNotFound)
})

it("CONNECT returns 404, because its target is not a path", async () => {
  expectError(await api.send("localhost:443", [], "CONNECT"), routeNotFound)
})

it.each(["http://localhost/api/v1/prompts", "HTTPS://user@else.where:99/api/v1/prompts"])(
  "GET %s returns the same response as GET /api/v1/prompts",
  async (target) => {
    const { headers: _, ...response } = await api.send(target, [authorization])
    const { headers: __, ...expected } = await api.send("/api/v1/prompts", [authorization])
    expect(response).toEqual(expected)
  }
)

it.each(["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND"])(
  "%s returns 405 with Allow on every route, with and without a key",
  async (method) => {
    const preflight = ["Origin: https://else.where", "Access-Control-Request-Method: GET"]
    for (const target of ["/api/v1/prompts", `${prompt}/versions/1`, "/healthz"])
      for (const lines of [[], [authorization], preflight])
        expectError(await api.send(target, lines, method), methodNotAllowed)
  }
)

it("HEAD returns the status and the headers of GET, and no body", async () => {
  const comparable = ({ status, headers }: HttpResponse) => ({
    status,
    headers: headers.filter(([name]) => name !== "x-request-id" && name !== "date")
  })
  for (const target of ["/api/v1/prompts", prompt, `/api/v1/prompts/${newId()}`]) {
    const get = await api.send(target, [authorization])
    const head = await api.send(target, [authorization], "HEAD")
    expect(head.body).toBe("")
    expect(comparable(head)).toEqual(comparable(get))
  }
})

it.each(["/healthz", "/readyz"])(
  "GET %s needs no key, and its response has Cache-Control: no-store",
  async (target) => {
    const response = await api.send(target, [])
    expectCommonHeaders(response)
    expect({ status: response.status, body: response.body }).toEqual({ status: 200, body: '{"status":"ok"}' })
    expect(getHeader(response, "cache-control")).toBe("no-store")
  }
)
