import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Address } from "../../../../src/adapters/inbound/http/Address.ts"
import { toBytes } from "../../../../src/adapters/inbound/http/HttpMessage.ts"
import { makeRequestContext } from "../../../../src/adapters/inbound/http/RequestContext.ts"
import { isAllowedOrigin, makeMcpEndpoint } from "../../../../src/adapters/inbound/mcp/McpEndpoint.ts"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import * as InProcessRateLimiter from "../../../../src/adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { Admission } from "../../../../src/application/Admission.ts"
import { Lifecycle } from "../../../../src/application/Lifecycle.ts"
import { Prompts } from "../../../../src/application/Prompts.ts"
import { PromptRepo } from "../../../../src/application/ports/PromptRepo.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"
import { sizes } from "../../../../src/domain/Sizes.ts"
import { instant, makeTenant, prompt } from "../../../support/archives.ts"
import { type Json, statelessHeaders, statelessMeta } from "../../../support/clients/mcp.ts"
import { makeTest } from "../../../support/makeTest.ts"

const at = (second: number) => instant(new Date(Date.UTC(2026, 0, 1, 0, 0, second)).toISOString())
const makeSlots = (count: number) => Array.from({ length: count }, (_, n) => `{{s${n}}}`).join("")

const prompts = [
  prompt({
    title: "Greeting",
    description: "Greets.",
    prompt_type: "assistant",
    current_content: "Greet {{name}} in a {{tone}} tone. {{ name }}!",
    updated_at: at(9)
  }),
  prompt({ title: "Plain", current_content: "Plain text", prompt_type: "system", updated_at: at(8) }),
  prompt({ title: "Repeated", current_content: "{{a}}".repeat(1_000), updated_at: at(7) }),
  prompt({ title: "Large", current_content: `{{a}}${"x".repeat(sizes.contentBytes)}`, updated_at: at(6) }),
  prompt({ title: "All slots", current_content: makeSlots(1_000), updated_at: at(5) }),
  prompt({ title: "More slots", current_content: makeSlots(1_001), updated_at: at(4) })
]
const tenant = makeTenant({ prompts })

type Read = Effect.Effect<never, Unavailable>

/** Makes the endpoint for the workspace. If given, `read` replaces every read of the store. */
const makeEndpoint = Effect.fnUntraced(function* (read?: Read) {
  const store = Layer.effect(
    PromptRepo,
    Effect.map(PromptRepo, (repo) => (read === undefined ? repo : new Proxy(repo, { get: () => () => read })))
  )
  const services = yield* Layer.build(
    Layer.mergeAll(
      Prompts.layer,
      Admission.layer({ perKey: 1_000, perProcess: 1_000 }),
      Layer.succeed(Address, {})
    ).pipe(
      Layer.provideMerge(store),
      Layer.provideMerge(Memory.layer),
      Layer.provide([InProcessRateLimiter.layer, Lifecycle.serving])
    )
  )
  yield* Effect.provideContext(Memory.storeArchive(tenant.archive), services)
  const { respond } = yield* Effect.provideContext(makeMcpEndpoint, services)
  /** Sends a message, and returns the status, the size and the message of the response. */
  const send = (message: unknown, headers: Readonly<Record<string, string>> = {}) => {
    const all = {
      authorization: `Bearer ${tenant.key.plaintext}`,
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...headers
    }
    const body = Buffer.from(JSON.stringify(message))
    const readBody = () => Effect.succeed(body)
    const request = { method: "POST", target: "/mcp", headers: all, readBody }
    return Effect.map(respond(makeRequestContext(request)), ({ status, body }) => ({
      status,
      size: body.length,
      message: JSON.parse(Buffer.from(toBytes(body)).toString()) as Json
    }))
  }
  /** Calls a method as a client of protocol version 2025-11-25. */
  const call = (method: string, params: object = {}) => send({ jsonrpc: "2.0", id: 1, method, params })
  return { send, call }
})
const test = makeTest(it.live)

const values = { name: "Ada", tone: "{{name}}" }
const name = "greeting"

test("prompts/list lists a prompt without arguments if the prompt is too large or has more than 1,000 slots", function* () {
  const { call } = yield* makeEndpoint()
  const { prompts } = (yield* call("prompts/list")).message.result
  assert.deepStrictEqual(
    prompts.map(({ name, arguments: args }: Json) => [name, args.length]),
    [
      ["greeting", 2],
      ["plain", 0],
      ["repeated", 1],
      ["large", 0],
      ["all-slots", 1_000],
      ["more-slots", 0]
    ]
  )
  assert.deepStrictEqual(prompts[0], {
    name,
    title: "Greeting",
    description: "Greets.",
    arguments: ["name", "tone"].map((name) => ({ name, required: true }))
  })
  const past = yield* call("prompts/list", { cursor: "9999999" })
  assert.deepStrictEqual(past.message.result, { prompts: [] })
})

test("in MCP version 2026-07-28, prompts/list and tools/list return a ttlMs of 30,000 and the cacheScope private", function* () {
  const { send } = yield* makeEndpoint()
  for (const method of ["prompts/list", "tools/list"]) {
    const message = { jsonrpc: "2.0", id: 1, method, params: { _meta: statelessMeta } }
    const { ttlMs, cacheScope } = (yield* send(message, statelessHeaders(method))).message.result
    assert.deepStrictEqual([ttlMs, cacheScope], [30_000, "private"])
  }
})

test("prompts/get fills in up to 1,000 arguments, and returns the role assistant for assistant prompts and user for all others", function* () {
  const { call } = yield* makeEndpoint()
  const args = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`s${n}`, "v"]))
  for (const [params, role, text] of [
    [{ name, arguments: values }, "assistant", "Greet Ada in a {{name}} tone. Ada!"],
    [{ name: "plain" }, "user", "Plain text"],
    [{ name: "all-slots", arguments: args }, "user", "v".repeat(1_000)]
  ] as const)
    assert.deepStrictEqual((yield* call("prompts/get", params)).message.result, {
      messages: [{ role, content: { type: "text", text } }]
    })
})

test("the tool get_prompt returns text, the tool list_prompts returns JSON, and both return isError for a wrong input", function* () {
  const { call } = yield* makeEndpoint()
  const page = JSON.stringify((yield* call("prompts/list")).message.result)
  for (const [tool, input, text, error] of [
    ["get_prompt", { name, arguments: values }, "Greet Ada in a {{name}} tone. Ada!", {}],
    ["list_prompts", {}, page, {}],
    ["get_prompt", { name }, "Missing argument, or not a string: name", { isError: true }],
    ["list_prompts", { cursor: "x" }, "cursor must be the nextCursor of a page", { isError: true }]
  ] as const) {
    const { message } = yield* call("tools/call", { name: tool, arguments: input })
    assert.deepStrictEqual(message.result, { content: [{ type: "text", text }], ...error })
  }
})

const badRequests: ReadonlyArray<readonly [method: string, params: object, message: string]> = [
  ...["", "0", "1.5", "99999999", 2, null, ["1"]].map(
    (cursor) => ["prompts/list", { cursor }, "cursor must be the nextCursor of a page"] as const
  ),
  ["prompts/get", {}, "name must be a string"],
  ["prompts/get", { name: 1 }, "name must be a string"],
  ["prompts/get", { name, arguments: [] }, "arguments must be an object"],
  ["prompts/get", { name, arguments: {} }, "Missing argument, or not a string: name"],
  ["prompts/get", { name, arguments: { ...values, name: 1 } }, "Missing argument, or not a string: name"],
  ...[
    ["toString", "toString"],
    ["__proto__", "__proto__"],
    ["x".repeat(1_000), `${"x".repeat(99)}…`]
  ].map(([unknown, shown]) => {
    const params = { name, arguments: { ...values, [unknown!]: "x" } }
    return ["prompts/get", params, `Unknown argument: ${shown}`] as const
  }),
  ["tools/call", { name: "toString" }, "Unknown tool: toString"]
]

test("an MCP call with invalid parameters gets an error that names the parameter or the argument", function* () {
  const { call } = yield* makeEndpoint()
  for (const [method, params, message] of badRequests) {
    const response = yield* call(method, params)
    const error = { code: -32602, message, data: { code: "BAD_REQUEST" } }
    assert.deepStrictEqual([response.status, response.message.error], [200, error])
  }
})

const repeated = { name: "repeated", arguments: { a: "\u20ac".repeat(4 * 1024) } }
for (const [what, params, code] of [
  ["a text above 1 MiB", { name: "large" }, "RESOLVED_TOO_LARGE"],
  ["a text that its arguments make larger than 1 MiB", repeated, "RESOLVED_TOO_LARGE"],
  ["more than 1,000 slots", { name: "more-slots" }, "RESOLVED_TOO_LARGE"],
  ["an unknown name", { name: "Not a name" }, "NOT_FOUND"]
] as const)
  test(`prompts/get fails with ${code} for ${what}`, function* () {
    const { call } = yield* makeEndpoint()
    const { error } = (yield* call("prompts/get", params)).message
    assert.deepStrictEqual([error.code, error.data], [-32602, { code }])
  })

const unavailable = { code: "SERVICE_UNAVAILABLE", retryAfter: 1 }
for (const [state, read, message, data] of [
  ["is unavailable", Effect.fail(Unavailable), "Service unavailable", unavailable],
  ["does not respond before the deadline", Effect.never, "Service unavailable", unavailable],
  ["fails unexpectedly", Effect.die("secret"), "Internal error", { code: "INTERNAL_ERROR" }]
] as const)
  test(`if the store ${state}, an MCP call gets the error ${message} with the id of the call`, function* () {
    const { call } = yield* makeEndpoint(read)
    const error = { code: -32603, message, data }
    const calls = [call("prompts/list"), call("tools/call", { name: "list_prompts" })]
    for (const { status, message } of yield* Effect.all(calls, { concurrency: 2 }))
      assert.deepStrictEqual([status, message], [200, { jsonrpc: "2.0", id: 1, error }])
  })

const long = "x".repeat(100_000)
const meta = (fields: object) => ({ params: { name, _meta: { ...statelessMeta, ...fields } } })
const texts: ReadonlyArray<[what: string, message: object, headers?: Readonly<Record<string, string>>]> = [
  ["method", { method: long }],
  ["protocol version", meta({ "io.modelcontextprotocol/protocolVersion": long })],
  ["client info", meta({ "io.modelcontextprotocol/clientInfo": { [long]: 1 } })],
  ["parameter of a tool", { method: "tools/call", params: { name: 1, [long]: 1 } }],
  ["version header", {}, { "mcp-protocol-version": long }],
  ["name header", meta({}), { ...statelessHeaders("prompts/get"), "mcp-name": long }]
]
for (const [what, fields, headers = statelessHeaders("prompts/get", name)] of texts)
  test(`an MCP error repeats at most 100 characters of a long ${what}`, function* () {
    const { send } = yield* makeEndpoint()
    const message = { jsonrpc: "2.0", id: 1, method: "prompts/get", params: { name }, ...fields }
    const responses = yield* Effect.forEach([headers, {}], (all) => send(message, all))
    const errors = responses.filter(({ message }) => message.error !== undefined)
    assert.isNotEmpty(errors)
    for (const { size, message: response } of errors) {
      assert.isBelow(size, 1_000)
      assert.notInclude(JSON.stringify(response), "x".repeat(101))
    }
  })

test("the MCP endpoint returns 400 for a batch, for more than 2,000 values, and for an id other than a number or a string of at most 100 characters", function* () {
  const { send } = yield* makeEndpoint()
  const ping = { jsonrpc: "2.0", id: 1, method: "ping" }
  const wide = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [n.toString(36), 1]))
  for (const [message, problem] of [
    [[ping, ping], "Batches are not supported"],
    ...["x".repeat(101), { a: "x" }, ["x"], true].map(
      (id) => [{ ...ping, id }, "The id is neither a number nor a string of at most 100 characters"] as const
    ),
    ...[
      { arguments: wide },
      { clientInfo: { icons: Array(500_000).fill(1) } },
      { _meta: { a: { b: [[[wide]]] } } }
    ].map((params) => [{ ...ping, params }, "The message has more than 2000 values"] as const)
  ] as const) {
    const response = yield* send(message)
    const error = { code: 400, message: problem, data: { code: "BAD_REQUEST" } }
    assert.deepStrictEqual([response.status, response.message.error], [400, error])
  }
  assert.strictEqual((yield* send({ ...ping, id: "x".repeat(100) })).message.id, "x".repeat(100))
})

const publicUrl = "https://prompts.example.com"
it.each([
  ...[undefined, "http://localhost", "http://localhost:6274", "https://127.0.0.1:1", "http://[::1]:3000"],
  publicUrl
])("the MCP endpoint accepts an absent origin, a local origin and the public origin: %j", (origin) => {
  assert.isTrue(isAllowedOrigin(origin, publicUrl))
  assert.strictEqual(isAllowedOrigin(origin, undefined), origin !== publicUrl)
})

it.each([
  ...["http://prompts.example.com", "https://prompts.example.com.evil.com", "http://localhost.evil.com"],
  ...["http://evil.com/localhost", "http://localhost@evil.com", "http://127.0.0.1.evil.com"],
  ...["null", "", "file://localhost"]
])("the MCP endpoint rejects the origin %j", (origin) => {
  assert.isFalse(isAllowedOrigin(origin, publicUrl))
})
