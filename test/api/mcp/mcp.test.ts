import { expect, it } from "vitest"
import { instant, makeTenant, prompt } from "../../support/archives.ts"
import { call, callStateless, post, type RpcResponse } from "../../support/clients/mcp.ts"
import { exchange, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { send } from "../../support/clients/requests.ts"
import { startApi } from "../startApi.ts"

// `test/adapters/inbound/mcp/HttpEndpoint.test.ts` tests the messages. These tests send them to a service.

/** Makes a workspace with prompts on three pages. All of them have this content, and some have the same title. */
const makeTenantWith = (content: string) => {
  const prompts = Array.from({ length: 43 }, (_, minute) =>
    prompt({
      title: `Prompt ${minute % 30}`,
      current_content: content,
      updated_at: instant(new Date(Date.UTC(2026, 0, 2, 0, minute)).toISOString())
    })
  )
  return { ...makeTenant({ prompts }), content }
}

const [own, other] = [makeTenantWith("Content of the first"), makeTenantWith("Content of the second")]
const free = makeTenant({ workspace: { tier: "free" } })
const api = startApi([own.archive, other.archive, free.archive], { env: { MCP: "on" } })
const toBearer = ({ key }: { readonly key: { readonly plaintext: string } }) => `Bearer ${key.plaintext}`

it.each([own, other])(
  "prompts/list lists each prompt of the workspace exactly once, under a unique name and in the order of the HTTP API, and prompts/get returns its content",
  async (tenant) => {
    const { plaintext } = tenant.key
    const prompts: Array<{ readonly name: string; readonly title: string }> = []
    let cursor: string | undefined
    do {
      const { body }: RpcResponse = await call(api.service(), plaintext, "prompts/list", { cursor })
      prompts.push(...body.result.prompts)
      cursor = body.result.nextCursor
    } while (cursor !== undefined)
    const { body } = await send(api.service(), "/api/v1/prompts?per_page=100", toBearer(tenant))
    const { data } = JSON.parse(body) as { readonly data: ReadonlyArray<{ readonly title: string }> }
    expect(prompts.map(({ title }) => title)).toEqual(data.map(({ title }) => title))
    expect(new Set(prompts.map(({ name }) => name)).size).toBe(43)
    for (const send of [call, callStateless]) {
      const { name } = prompts.at(-1)!
      const { status, headers, body } = await send(api.service(), plaintext, "prompts/get", { name })
      const found = [status, headers.get("content-type"), headers.get("cache-control")]
      expect(found).toEqual([200, "application/json", "no-store"])
      expect(body.result.messages[0].content.text).toBe(tenant.content)
    }
  }
)

it.each([
  ["no key", {}, 401, "UNAUTHORIZED", "Missing or malformed Authorization header"],
  [
    "a Free key",
    { authorization: toBearer(free) },
    403,
    "API_NOT_ALLOWED",
    "API access requires the Solo plan or higher"
  ]
])(
  "an MCP request with %s gets the status, the code and the message of the HTTP API",
  async (_, headers, status, code, message) => {
    const response = await post(api.service(), "{}", headers)
    const body = { jsonrpc: "2.0", error: { code: status, message, data: { code } } }
    expect([response.status, response.body]).toEqual([status, body])
    expect(response.headers.get("www-authenticate")?.startsWith("Bearer") ?? false).toBe(status === 401)
    expect(response.headers.get("x-request-id")).not.toBeNull()
  }
)

it.each([
  ["http://evil.example.com", "", 403],
  ["null", "", 403],
  ["http://localhost:6274", toBearer(own), 400]
])(
  "an MCP request with the origin %s and the authorization '%s' gets %i, because the origin is checked before the key",
  async (origin, authorization, status) => {
    expect((await post(api.service(), "{}", { authorization, origin })).status).toBe(status)
  }
)

it("an MCP request with the method GET gets 405, even without a key", async () => {
  const response = await exchange(api.service().port, rawRequest("/mcp"))
  expect([response.status, getHeader(response, "allow")]).toEqual([405, "POST"])
  expect(JSON.parse(response.body).error.data.code).toBe("METHOD_NOT_ALLOWED")
})

it("the log contains neither the arguments of MCP calls nor the names of prompts", async () => {
  const { output, ...service } = api.service()
  const params = { name: "canary-name", arguments: { x: "canary-argument" } }
  await call(service, own.key.plaintext, "prompts/get", params, { "x-request-id": "call-with-names" })
  await expect.poll(output).toContain("call-with-names")
  expect(output()).not.toMatch(/canary-/)
})
