import { expect, it } from "vitest"
import { sample } from "../support/archives.ts"
import { getHeader } from "../support/clients/rawHttp.ts"
import { expectSuccess, generatedRequestId } from "./expectations.ts"
import { authorize, startApi } from "./startApi.ts"

const home = sample()
const authorization = authorize(home.keys.active.plaintext)
const { send } = startApi([home.archive])

it("cookies, cross-site headers, Accept and Range do not change the response", async () => {
  const target = `/api/v1/prompts/${home.archive.prompts[0]!.id}`
  const plain = await send(target, [authorization])
  const response = await send(target, [
    authorization,
    "Cookie: session=1; csrf=2",
    "Origin: https://else.where",
    "Referer: https://else.where/",
    "Sec-Fetch-Site: cross-site",
    "Accept: text/html",
    "Accept-Encoding: gzip",
    "Range: bytes=0-1"
  ])
  expectSuccess(response, undefined, home.archive.prompts[0]!.current_version)
  expect(response.body).toBe(plain.body)
  expect(getHeader(response, "etag")).toBe(getHeader(plain, "etag"))
})

it.each(["a", "A-z_0.9", "x".repeat(128)])("every response repeats the valid request id %s", async (id) => {
  for (const target of ["/api/v1/prompts", "/nowhere", "/healthz"])
    expect(getHeader(await send(target, [authorization, `X-Request-Id: ${id}`]), "x-request-id")).toBe(id)
})

it.each(["", "a b", "x".repeat(129), "\u00e9", "a,b", "<script>"])(
  "a response has a generated id instead of the invalid request id %j",
  async (id) => {
    const response = await send("/nowhere", [`X-Request-Id: ${id}`])
    expect(getHeader(response, "x-request-id")).toMatch(generatedRequestId)
  }
)
