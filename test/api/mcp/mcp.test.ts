import { expect, it } from "vitest"
import { instant, makeTenant, prompt } from "../../support/archives.ts"
import { call, post, type RpcResponse } from "../../support/clients/mcp.ts"
import { exchange, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { startApi } from "../startApi.ts"

// `test/adapters/inbound/mcp/McpEndpoint.test.ts` tests the messages. This file sends messages to a running service.

/** Prompts that fill three pages. Some prompts have the same title. */
const prompts = Array.from({ length: 43 }, (_, minute) =>
  prompt({
    title: `Prompt ${minute % 30}`,
    current_content: `Content ${minute}`,
    updated_at: instant(new Date(Date.UTC(2026, 0, 2, 0, minute)).toISOString())
  })
)
const own = makeTenant({ prompts })
const free = makeTenant({ workspace: { tier: "free" } })
const api = startApi([own.archive, free.archive], { env: { MCP: "on" } })

it("prompts/list lists every prompt of the workspace once, most recently updated first, and each under a unique name", async () => {
  const { plaintext } = own.key
  const listed: Array<{ readonly name: string; readonly title: string }> = []
  let cursor: string | undefined
  do {
    const { headers, body }: RpcResponse = await call(api.service(), plaintext, "prompts/list", { cursor })
    const found = [headers.get("content-type"), headers.get("cache-control")]
    expect(found).toEqual(["application/json", "no-store"])
    listed.push(...body.result.prompts)
    cursor = body.result.nextCursor
  } while (cursor !== undefined)
  expect(listed.map(({ title }) => title)).toEqual(prompts.map(({ title }) => title).toReversed())
  expect(new Set(listed.map(({ name }) => name)).size).toBe(43)
})

const planRequired = "API access requires the Solo plan or higher"
it.each([
  ["another origin", { origin: "http://evil.test" }, 403, "FORBIDDEN_ORIGIN", "The origin is not allowed"],
  ["no key", {}, 401, "UNAUTHORIZED", "Missing or malformed Authorization header"],
  ["a Free key", { authorization: `Bearer ${free.key.plaintext}` }, 403, "API_NOT_ALLOWED", planRequired]
])(
  "an MCP request with %s gets the status, the code and the message of the first check that fails",
  async (_, headers, status, code, message) => {
    const response = await post(api.service(), "{}", { origin: "http://localhost:6274", ...headers })
    const body = { jsonrpc: "2.0", error: { code: status, message, data: { code } } }
    expect([response.status, response.body]).toEqual([status, body])
    expect(response.headers.get("www-authenticate")?.startsWith("Bearer") ?? false).toBe(status === 401)
    expect(response.headers.get("x-request-id")).not.toBeNull()
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
