import { describe, expect, it } from "vitest"
import { fragment, fragmentBinding, instant, makeTenant, prompt } from "../../support/archives.ts"
import { call, callStateless, post, statelessHeaders, statelessMeta } from "../../support/clients/mcp.ts"
import { exchange, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { startApi } from "../startApi.ts"

const pageSize = 20

/**
 * Makes a workspace with a key. Some prompts of the workspace contain the canary, a text that callers of other
 * workspaces must never get.
 */
const makeCanaryTenant = (canary: string) => {
  const tone = fragment(`${canary} Answer {{who}} in a {{tone}} tone. {{name}}`)
  const at = (minute: number) => instant(new Date(Date.UTC(2026, 0, 2, 0, minute)).toISOString())
  const greeting = prompt({
    title: "Greeting of Ada",
    description: `${canary} greets`,
    current_content: `Greet {{ name }} and {{name}}. ${canary}`,
    prompt_type: "assistant",
    fragments: [fragmentBinding(tone, 0, { variable_overrides: { tone: "{{mood}}" } })],
    updated_at: at(200)
  })
  const twins = [1, 2].map((n) =>
    prompt({ title: `${canary} twin`, current_content: `Twin ${n}`, updated_at: at(190 + n) })
  )
  const fillers = Array.from({ length: 2 * pageSize }, (_, n) =>
    prompt({ title: `Filler ${n}`, updated_at: at(n) })
  )
  const archived = prompt({ title: "Archived", is_archived: true, updated_at: at(250) })
  const tenant = makeTenant({
    workspace: { name: canary },
    fragments: [tone],
    prompts: [greeting, ...twins, ...fillers, archived]
  })
  return {
    canary,
    id: tenant.home.id,
    key: tenant.key.plaintext,
    greeting,
    twins,
    total: 3 + fillers.length,
    archive: tenant.archive
  }
}

const own = makeCanaryTenant("canary-of-the-first")
const other = makeCanaryTenant("canary-of-the-second")
const free = makeTenant({ workspace: { tier: "free" } })
const api = startApi([own.archive, other.archive, free.archive], { env: { MCP: "on" } })

const listAll = async (tenantKey: string) => {
  const prompts: Array<{ readonly name: string; readonly title: string; readonly arguments: unknown }> = []
  for (let cursor: string | undefined; ; ) {
    const { body } = await call(
      api.service(),
      tenantKey,
      "prompts/list",
      cursor === undefined ? {} : { cursor }
    )
    prompts.push(...body.result.prompts)
    cursor = body.result.nextCursor
    if (cursor === undefined) return prompts
  }
}

describe("prompts/list", () => {
  it("prompts/list lists each unarchived prompt exactly once, under a unique name and in the order of the HTTP API", async () => {
    const prompts = await listAll(own.key)
    expect(prompts.length).toBe(own.total)
    expect(new Set(prompts.map(({ name }) => name)).size).toBe(own.total)
    const titles: Array<string> = []
    for (const page of [1, 2]) {
      const response = await fetch(`${api.service().url}/api/v1/prompts?per_page=100&page=${page}`, {
        headers: { authorization: `Bearer ${own.key}` }
      })
      const { data } = (await response.json()) as { data: ReadonlyArray<{ title: string }> }
      titles.push(...data.map(({ title }) => title))
    }
    expect(prompts.map(({ title }) => title)).toEqual(titles)
  })

  it("prompts/list lists each unfilled slot of the resolved content once, in the order of the content, as a required argument", async () => {
    const [first] = await listAll(own.key)
    expect(first).toEqual({
      name: "greeting-of-ada",
      title: "Greeting of Ada",
      description: `${own.canary} greets`,
      arguments: ["name", "who", "mood"].map((name) => ({ name, required: true }))
    })
  })

  it.each(["x", 1])("prompts/list rejects the cursor %j with the error -32602", async (cursor) => {
    const { status, body } = await call(api.service(), own.key, "prompts/list", { cursor })
    expect([status, body.error.code, body.error.data.code]).toEqual([200, -32602, "BAD_REQUEST"])
  })
})

describe("prompts/get", () => {
  const values = { name: "Ada", who: "Bob", mood: "{{x}}" }

  it("in the protocol versions 2025-11-25 and 2026-07-28, prompts/get returns the resolved content with the arguments filled in", async () => {
    const text = `Greet Ada and Ada. ${own.canary}\n\n${own.canary} Answer Bob in a {{x}} tone. Ada`
    const messages = [{ role: "assistant", content: { type: "text", text } }]
    const params = { name: "greeting-of-ada", arguments: values }
    for (const send of [call, callStateless]) {
      const { status, headers, body } = await send(api.service(), own.key, "prompts/get", params)
      expect([status, headers.get("content-type"), headers.get("cache-control")]).toEqual([
        200,
        "application/json",
        "no-store"
      ])
      expect(body).toMatchObject({ jsonrpc: "2.0", id: 1, result: { messages } })
    }
  })

  it("prompts/get returns edited content within 5 s of the edit", async () => {
    const name = "filler-7"
    const read = async () =>
      (await call(api.service(), own.key, "prompts/get", { name })).body.result.messages[0].content.text
    expect(await read()).toBe("Content")
    await api.sql(
      `update prompts set current_content = 'Edited' where workspace_id = $1 and title = 'Filler 7'`,
      [own.id]
    )
    await expect.poll(read, { interval: 10, timeout: 5_000 }).toBe("Edited")
  })
})

describe("MCP clients of two workspaces", () => {
  it("MCP clients of two workspaces never get each other's prompts", async () => {
    for (const [mine, theirs] of [
      [own, other],
      [other, own]
    ] as const) {
      expect(JSON.stringify(await listAll(mine.key))).not.toContain(theirs.canary)
      const name = `${theirs.canary}-twin-${theirs.twins[0]!.id.slice(0, 8)}`
      const { body } = await call(api.service(), mine.key, "prompts/get", { name })
      expect(body.error).toEqual({
        code: -32602,
        message: "Prompt not found",
        data: { code: "NOT_FOUND" }
      })
      const got = await call(api.service(), mine.key, "prompts/get", {
        name: "greeting-of-ada",
        arguments: { name: "a", who: "b", mood: "c" }
      })
      expect(got.body.result.messages[0].content.text).toContain(mine.canary)
      expect(JSON.stringify(got.body)).not.toContain(theirs.canary)
    }
  })
})

describe("a rejected MCP request", () => {
  const send = (headers: Readonly<Record<string, string>>, body = "{}") => post(api.service(), body, headers)

  it.each([
    ["no key", {}, 401, "UNAUTHORIZED", "Missing or malformed Authorization header"],
    [
      "a key of the Free tier",
      { authorization: `Bearer ${free.key.plaintext}` },
      403,
      "API_NOT_ALLOWED",
      "API access requires the Solo plan or higher"
    ]
  ])(
    "an MCP request with %s gets the status, the code and the message of the HTTP API",
    async (_, headers, status, code, message) => {
      const response = await send(headers)
      expect([response.status, response.body]).toEqual([
        status,
        { jsonrpc: "2.0", error: { code: status, message, data: { code } } }
      ])
      expect(response.headers.get("www-authenticate")?.startsWith("Bearer") ?? false).toBe(status === 401)
      expect(response.headers.get("x-request-id")).not.toBeNull()
    }
  )

  it.each([
    ["http://evil.example.com", 403],
    ["null", 403],
    ["http://localhost:6274", 400]
  ])(
    "an MCP request with the origin %s gets %i, and the origin is checked before the key",
    async (origin, status) => {
      const authorization: Record<string, string> =
        status === 403 ? {} : { authorization: `Bearer ${own.key}` }
      expect((await send({ ...authorization, origin })).status).toBe(status)
    }
  )

  it.each(["GET", "DELETE", "PUT"])(
    "an MCP request with the method %s gets 405, even without a key",
    async (method) => {
      const response = await exchange(api.service().port, rawRequest("/mcp", [], method))
      expect([response.status, getHeader(response, "allow")]).toEqual([405, "POST"])
      expect(JSON.parse(response.body).error.data.code).toBe("METHOD_NOT_ALLOWED")
    }
  )

  it("an MCP request with a body of more than 1 MiB gets 413, and the connection closes", async () => {
    const body = "x".repeat(2 * 1024 * 1024)
    const lines = [`Authorization: Bearer ${own.key}`, `Content-Length: ${body.length}`]
    const request = rawRequest("/mcp", lines, "POST").replace("Connection: close\r\n", "") + body
    const response = await exchange(api.service().port, request)
    expect([response.status, JSON.parse(response.body).error.data.code]).toEqual([413, "BODY_TOO_LARGE"])
  })
})

describe("the endpoint /mcp", () => {
  it("a request for an unknown path below /mcp gets the 404 of the HTTP API", async () => {
    const response = await fetch(`${api.service().url}/mcp/x`, { method: "POST", body: "{}" })
    expect([response.status, await response.json()]).toEqual([
      404,
      { error: { code: "NOT_FOUND", message: "Route not found" } }
    ])
  })

  it("a client that sends an MCP notification or an MCP response gets 202 without a body", async () => {
    for (const message of [
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 1, result: {} }
    ]) {
      const headers = { authorization: `Bearer ${own.key}` }
      const response = await post(api.service(), JSON.stringify(message), headers)
      expect([response.status, response.body]).toEqual([202, undefined])
    }
  })
})

it("subscriptions/listen gets a response that ends, because the service does not report changes", async () => {
  const headers = { authorization: `Bearer ${own.key}`, ...statelessHeaders("subscriptions/listen") }
  const response = await fetch(`${api.service().url}/mcp`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      ...headers
    },
    body: JSON.stringify({
      jsonrpc: "2.0",
      id: 7,
      method: "subscriptions/listen",
      params: { notifications: { promptsListChanged: true }, _meta: statelessMeta }
    })
  })
  expect([response.status, response.headers.get("content-type")]).toEqual([200, "text/event-stream"])
  const events = [...(await response.text()).matchAll(/^data: (.*)$/gm)]
  expect(events.map(([, json]) => JSON.parse(json!))).toMatchObject([
    { params: { notifications: {} } },
    { id: 7, result: {} }
  ])
})

it("the log contains neither the arguments of MCP calls nor the content of prompts", async () => {
  await call(api.service(), own.key, "prompts/get", {
    name: "argument-canary",
    arguments: { x: "argument-canary" }
  })
  const output = api.service().output()
  expect(output).toContain('"route":"/mcp"')
  for (const text of ["argument-canary", own.canary, "greeting-of-ada"]) expect(output).not.toContain(text)
})
