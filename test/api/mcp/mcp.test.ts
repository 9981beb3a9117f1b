import { describe, expect, it } from "vitest"
import { fragment, fragmentBinding, instant, makeTenant, prompt } from "../../support/archives.ts"
import { call, callStateless, post } from "../../support/clients/mcp.ts"
import { exchange, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { send } from "../../support/clients/requests.ts"
import { startApi } from "../startApi.ts"

// `test/adapters/inbound/mcp/HttpEndpoint.test.ts` tests the messages. These tests send them to a service.

const at = (minute: number) => instant(new Date(Date.UTC(2026, 0, 2, 0, minute)).toISOString())

/** Makes a workspace. Its prompts contain the canary, a text that callers of other workspaces must never get. */
const makeCanaryTenant = (canary: string) => {
  const tone = fragment(`${canary} Answer {{who}} in a {{tone}} tone. {{name}}`)
  const greeting = prompt({
    title: "Greeting of Ada",
    current_content: `Greet {{ name }} and {{name}}. ${canary}`,
    prompt_type: "assistant",
    fragments: [fragmentBinding(tone, 0, { variable_overrides: { tone: "{{mood}}" } })],
    updated_at: at(200)
  })
  // Several of these prompts have the same title.
  const fillers = Array.from({ length: 42 }, (_, n) =>
    prompt({ title: `${canary} ${n % 30}`, updated_at: at(n) })
  )
  const archived = prompt({ title: "Archived", is_archived: true, updated_at: at(250) })
  const prompts = [greeting, ...fillers, archived]
  return { ...makeTenant({ fragments: [tone], prompts }), canary }
}

const [own, other] = [makeCanaryTenant("canary-of-the-first"), makeCanaryTenant("canary-of-the-second")]
const free = makeTenant({ workspace: { tier: "free" } })
const api = startApi([own.archive, other.archive, free.archive], { env: { MCP: "on" } })
const key = own.key.plaintext
const toBearer = ({ key }: { readonly key: { readonly plaintext: string } }) => `Bearer ${key.plaintext}`

const listAll = async ({ key }: typeof own) => {
  const prompts: Array<{ readonly name: string; readonly title: string }> = []
  for (let cursor: string | undefined; ; ) {
    const params = cursor === undefined ? {} : { cursor }
    const { result } = (await call(api.service(), key.plaintext, "prompts/list", params)).body
    prompts.push(...result.prompts)
    cursor = result.nextCursor
    if (cursor === undefined) return prompts
  }
}

it("prompts/list lists each unarchived prompt exactly once, under a unique name and in the order of the HTTP API", async () => {
  const prompts = await listAll(own)
  const { body } = await send(api.service(), "/api/v1/prompts?per_page=100", toBearer(own))
  const { data } = JSON.parse(body) as { readonly data: ReadonlyArray<{ readonly title: string }> }
  expect(prompts.map(({ title }) => title)).toEqual(data.map(({ title }) => title))
  expect(new Set(prompts.map(({ name }) => name)).size).toBe(43)
})

it("in the protocol versions 2025-11-25 and 2026-07-28, prompts/get returns the resolved content with the arguments filled in", async () => {
  const params = { name: "greeting-of-ada", arguments: { name: "Ada", who: "Bob", mood: "{{x}}" } }
  const text = `Greet Ada and Ada. ${own.canary}\n\n${own.canary} Answer Bob in a {{x}} tone. Ada`
  const messages = [{ role: "assistant", content: { type: "text", text } }]
  for (const send of [call, callStateless]) {
    const { status, headers, body } = await send(api.service(), key, "prompts/get", params)
    expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
      200,
      "application/json",
      "no-store"
    ])
    expect(body).toMatchObject({ jsonrpc: "2.0", id: 1, result: { messages } })
  }
})

it("MCP clients of two workspaces never get each other's prompts", async () => {
  for (const [mine, theirs] of [
    [own, other],
    [other, own]
  ] as const) {
    const get = async (params: object) =>
      (await call(api.service(), mine.key.plaintext, "prompts/get", params)).body
    expect(JSON.stringify(await listAll(mine))).not.toContain(theirs.canary)
    const { error } = await get({ name: `${theirs.canary}-1` })
    expect(error).toEqual({ code: -32602, message: "Prompt not found", data: { code: "NOT_FOUND" } })
    const got = await get({ name: "greeting-of-ada", arguments: { name: "a", who: "b", mood: "c" } })
    expect(got.result.messages[0].content.text).toContain(mine.canary)
    expect(JSON.stringify(got)).not.toContain(theirs.canary)
  }
})

describe("a rejected MCP request", () => {
  it.each<[who: string, authorization: string | undefined, status: number, code: string, message: string]>([
    ["no key", undefined, 401, "UNAUTHORIZED", "Missing or malformed Authorization header"],
    ["a Free key", toBearer(free), 403, "API_NOT_ALLOWED", "API access requires the Solo plan or higher"]
  ])(
    "an MCP request with %s gets the status, the code and the message of the HTTP API",
    async (_, authorization, status, code, message) => {
      const headers = authorization === undefined ? {} : { authorization }
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
})

it("the log contains neither the arguments of MCP calls nor the names of prompts", async () => {
  await call(api.service(), key, "prompts/get", {
    name: "argument-canary",
    arguments: { x: "argument-canary" }
  })
  const output = api.service().output()
  expect(output).toContain('"route":"/mcp"')
  for (const text of ["argument-canary", "greeting-of-ada"]) expect(output).not.toContain(text)
})
