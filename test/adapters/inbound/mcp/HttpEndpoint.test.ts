import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { makeHttpEndpoint } from "../../../../src/adapters/inbound/mcp/HttpEndpoint.ts"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { storeArchive } from "../../../../src/adapters/outbound/memory/MemoryState.ts"
import type { AdmittedCaller } from "../../../../src/application/access/Admission.ts"
import { PromptRepo } from "../../../../src/application/ports/PromptRepo.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"
import { programVersion } from "../../../../src/application/ProgramVersion.ts"
import { Prompts } from "../../../../src/application/reading/Prompts.ts"
import { hashApiKey } from "../../../../src/domain/ApiKey.ts"
import { sizes } from "../../../../src/domain/Sizes.ts"
import { instant, makeTenant, prompt } from "../../../support/archives.ts"
import { type Json, statelessHeaders, statelessMeta } from "../../../support/clients/mcp.ts"

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
const caller: AdmittedCaller = {
  workspaceId: tenant.home.id,
  tier: "team",
  keyId: tenant.key.stored.id,
  keyHash: hashApiKey(tenant.key.plaintext as Parameters<typeof hashApiKey>[0]),
  keyExpiresAt: null
}

type Read = Effect.Effect<never, Unavailable>

/** Makes the endpoint for the workspace. If `read` is given, it replaces every read of the store. */
const makeEndpoint = Effect.fnUntraced(function* (read?: Read) {
  const store = Layer.effect(
    PromptRepo,
    Effect.map(PromptRepo, (repo) => (read === undefined ? repo : new Proxy(repo, { get: () => () => read })))
  )
  const services = yield* Layer.build(
    Prompts.layer.pipe(Layer.provideMerge(store), Layer.provideMerge(Memory.layer))
  )
  yield* Effect.provideContext(storeArchive(tenant.archive), services)
  const { respond } = yield* Effect.provideContext(makeHttpEndpoint, services)
  /** Sends bytes or a message, and returns the status and the message of the response. */
  const send = (message: unknown, headers: Readonly<Record<string, string>> = {}) => {
    const body = message instanceof Uint8Array ? message : Buffer.from(JSON.stringify(message))
    const all = {
      accept: "application/json, text/event-stream",
      "content-type": "application/json",
      ...headers
    }
    return Effect.map(
      Effect.result(respond({ headers: all, requestId: "request", caller, body })),
      (result) => {
        if (result._tag === "Failure")
          return { status: result.failure.status, size: 0, failure: result.failure }
        const { status, type, body } = result.success
        const text = Buffer.from(body).toString()
        return {
          status,
          type,
          size: body.length,
          message: (text === "" ? undefined : JSON.parse(text)) as Json
        }
      }
    )
  }
  /** Calls a method as a client of protocol version 2025-11-25. */
  const call = (method: string, params: object = {}) => send({ jsonrpc: "2.0", id: 1, method, params })
  /** Calls a method as a client of protocol version 2026-07-28. */
  const callStateless = (method: string, params: { readonly name?: string } = {}) =>
    send(
      { jsonrpc: "2.0", id: 1, method, params: { ...params, _meta: statelessMeta } },
      statelessHeaders(method, params.name)
    )
  return { send, call, callStateless }
})
type Endpoint = Effect.Success<ReturnType<typeof makeEndpoint>>

const test = (title: string, run: (endpoint: Endpoint) => Effect.Effect<void>, read?: Read) =>
  it.live(title, () => Effect.scoped(Effect.flatMap(makeEndpoint(read), run)))

const serverInfo = { name: "prompt-retrieval", title: "Prompts", version: programVersion }
const values = { name: "Ada", tone: "{{name}}" }
const text = "Greet Ada in a {{name}} tone. Ada!"

describe("the results of calls", () => {
  test("prompts/list lists a prompt that is too large or has more than 1,000 slots without arguments", ({
    call
  }) =>
    Effect.gen(function* () {
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
        name: "greeting",
        title: "Greeting",
        description: "Greets.",
        arguments: ["name", "tone"].map((name) => ({ name, required: true }))
      })
      const past = yield* call("prompts/list", { cursor: "9999999" })
      assert.deepStrictEqual(past.message.result, { prompts: [] })
    }))

  test("in protocol version 2026-07-28, the lists say how long they are fresh, and that they are private", ({
    callStateless
  }) =>
    Effect.gen(function* () {
      for (const method of ["prompts/list", "tools/list"]) {
        const { ttlMs, cacheScope, resultType, _meta } = (yield* callStateless(method)).message.result
        assert.deepStrictEqual([ttlMs, cacheScope, resultType], [30_000, "private", "complete"])
        assert.deepStrictEqual(_meta, { "io.modelcontextprotocol/serverInfo": serverInfo })
      }
    }))

  test("prompts/get fills in up to 1,000 arguments, and returns the role assistant for assistant prompts and user for all others", ({
    call
  }) =>
    Effect.gen(function* () {
      const args = Object.fromEntries(Array.from({ length: 1_000 }, (_, n) => [`s${n}`, "v"]))
      for (const [params, role, text] of [
        [{ name: "greeting", arguments: values }, "assistant", "Greet Ada in a {{name}} tone. Ada!"],
        [{ name: "plain" }, "user", "Plain text"],
        [{ name: "all-slots", arguments: args }, "user", "v".repeat(1_000)]
      ] as const)
        assert.deepStrictEqual((yield* call("prompts/get", params)).message.result, {
          messages: [{ role, content: { type: "text", text } }]
        })
    }))

  test("the tool get_prompt returns the text, and the tool list_prompts the result of prompts/list as JSON", ({
    call
  }) =>
    Effect.gen(function* () {
      const tool = (name: string, args: object) =>
        Effect.map(call("tools/call", { name, arguments: args }), ({ message }) => message.result)
      assert.deepStrictEqual(yield* tool("get_prompt", { name: "greeting", arguments: values }), {
        content: [{ type: "text", text }]
      })
      const listed = yield* tool("list_prompts", {})
      assert.deepStrictEqual(JSON.parse(listed.content[0].text), (yield* call("prompts/list")).message.result)
    }))

  test("a tool reports a wrong input as a result with isError, so that a model can correct the input", ({
    call
  }) =>
    Effect.gen(function* () {
      for (const [name, input, text] of [
        ["get_prompt", { name: "greeting" }, "Missing argument, or not a string: name"],
        ["get_prompt", { name: "other" }, "Prompt not found"],
        ["list_prompts", { cursor: "x" }, "cursor must be the nextCursor of a page"]
      ]) {
        const { message } = yield* call("tools/call", { name, arguments: input })
        assert.deepStrictEqual(message.result, { content: [{ type: "text", text }], isError: true })
      }
    }))
})

describe("the errors of calls with invalid parameters", () => {
  const long = "x".repeat(1_000)
  const tooLarge = { code: "RESOLVED_TOO_LARGE" }
  const bad = { code: "BAD_REQUEST" }
  const missing = { code: "NOT_FOUND" }
  const greeting = (args: unknown) => ({ name: "greeting", arguments: args })
  const wrong: ReadonlyArray<[method: string, params: object, data: object, message?: string]> = [
    ...["", "0", "-1", "1.5", "99999999", "x".repeat(5_000), 2, null, ["1"]].map(
      (cursor): [string, object, object, string] => [
        ...(["prompts/list", { cursor }, bad] as const),
        "cursor must be the nextCursor of a page"
      ]
    ),
    ["prompts/get", {}, bad, "name must be a string"],
    ["prompts/get", { name: 1 }, bad, "name must be a string"],
    ["prompts/get", { name: "other" }, missing, "Prompt not found"],
    ["prompts/get", { name: "Not a name" }, missing, "Prompt not found"],
    ["prompts/get", { name: "greeting" }, bad, "Missing argument, or not a string: name"],
    ["prompts/get", greeting({ name: "Ada" }), bad, "Missing argument, or not a string: tone"],
    ["prompts/get", greeting({ ...values, name: 1 }), bad, "Missing argument, or not a string: name"],
    ["prompts/get", greeting({ ...values, toString: "x" }), bad, "Unknown argument: toString"],
    ["prompts/get", greeting({ ...values, [long]: "x" }), bad, `Unknown argument: ${"x".repeat(99)}…`],
    ["prompts/get", greeting([]), bad, "arguments must be an object"],
    [
      "prompts/get",
      greeting(JSON.parse('{"__proto__":"x","name":"a","tone":"b"}')),
      bad,
      "Unknown argument: __proto__"
    ],
    ["prompts/get", { name: "large" }, tooLarge],
    ["prompts/get", { name: "repeated", arguments: { a: "\u20ac".repeat(4 * 1024) } }, tooLarge],
    ["prompts/get", { name: "more-slots" }, tooLarge],
    ["tools/call", { name: "delete_prompt" }, bad, "Unknown tool: delete_prompt"],
    ["tools/call", { name: "toString" }, bad, "Unknown tool: toString"]
  ]
  for (const [method, params, data, message] of wrong)
    test(`${method} with ${JSON.stringify(params).slice(0, 90)} fails with ${message ?? "RESOLVED_TOO_LARGE"}`, ({
      call
    }) =>
      Effect.gen(function* () {
        const { status, message: response } = yield* call(method, params)
        const { error } = response
        assert.deepStrictEqual(
          [status, error],
          [200, { code: -32602, message: message ?? error.message, data }]
        )
      }))
})

describe("a store that fails during a call", () => {
  const methods = [
    ["prompts/list", {}],
    ["prompts/get", { name: "greeting", arguments: values }],
    ["tools/call", { name: "list_prompts" }]
  ] as const
  const expectUnavailable = ({ send }: Endpoint) =>
    Effect.forEach(
      methods,
      ([method, params], id) =>
        Effect.map(send({ jsonrpc: "2.0", id, method, params }), ({ status, message }) => {
          const error = {
            code: -32603,
            message: "Service unavailable",
            data: { code: "SERVICE_UNAVAILABLE", retryAfter: 1 }
          }
          assert.deepStrictEqual([status, message], [200, { jsonrpc: "2.0", id, error }])
        }),
      { concurrency: "unbounded", discard: true }
    )

  for (const [state, read] of [
    ["is unavailable", Effect.fail(Unavailable)],
    ["does not respond before the deadline", Effect.never]
  ] as const)
    test(
      `if the store ${state}, a call gets a JSON-RPC error with the id of the call`,
      expectUnavailable,
      read
    )

  test(
    "an unexpected failure gets a JSON-RPC error without details",
    ({ call }) =>
      Effect.gen(function* () {
        const { status, message } = yield* call("prompts/list")
        assert.deepStrictEqual([status, message.error], [
          200,
          { code: -32603, message: "Internal error", data: { code: "INTERNAL_ERROR" } }
        ] as Json)
      }),
    Effect.die("secret")
  )
})

describe("the versions of the protocol", () => {
  const capabilities = { prompts: {}, tools: {} }

  test("initialize negotiates a version before 2026-07-28, and server/discover returns the version 2026-07-28", ({
    call,
    callStateless
  }) =>
    Effect.gen(function* () {
      for (const [requested, protocolVersion] of [
        ["2025-11-25", "2025-11-25"],
        ["2025-06-18", "2025-06-18"],
        ["2026-07-28", "2025-11-25"]
      ]) {
        const clientInfo = { name: "test", version: "1" }
        const params = { protocolVersion: requested, capabilities: {}, clientInfo }
        const { instructions: _, ...result } = (yield* call("initialize", params)).message.result
        assert.deepStrictEqual(result, { protocolVersion, capabilities, serverInfo })
      }
      const { supportedVersions, capabilities: found } = (yield* callStateless("server/discover")).message
        .result
      assert.deepStrictEqual([supportedVersions, found], [["2026-07-28"], capabilities])
    }))

  test("an unknown method gets the error -32601", ({ call, callStateless }) =>
    Effect.gen(function* () {
      for (const [respond, status] of [
        [call, 200],
        [callStateless, 404]
      ] as const)
        for (const method of ["resources/list", "toString", "__proto__"]) {
          const response = yield* respond(method)
          assert.deepStrictEqual([response.status, response.message.error.code], [status, -32601])
        }
    }))

  test("a notification and a response get 202 without a body", ({ send }) =>
    Effect.gen(function* () {
      for (const message of [
        { jsonrpc: "2.0", method: "notifications/initialized" },
        { jsonrpc: "2.0", id: 1, result: {} }
      ]) {
        const { status, size } = yield* send(message)
        assert.deepStrictEqual([status, size], [202, 0])
      }
    }))
})

describe("a message that the package must not get", () => {
  test("a batch gets 400, because it would be one request against the rate limits", ({ send }) =>
    Effect.gen(function* () {
      const ping = { jsonrpc: "2.0", id: 1, method: "ping" }
      const { failure } = yield* send([ping, ping])
      assert.deepStrictEqual([failure?.status, failure?.message], [400, "Batches are not supported"])
    }))

  test("an id of more than 100 characters gets 400, because every response repeats the id", ({ send }) =>
    Effect.gen(function* () {
      const ping = (id: unknown) => send({ jsonrpc: "2.0", id, method: "ping" })
      assert.strictEqual((yield* ping("x".repeat(100))).message.id, "x".repeat(100))
      assert.strictEqual((yield* ping("x".repeat(101))).status, 400)
      for (const id of [["x".repeat(101)], { toString: 1 }, null, 1.5])
        assert.isTrue([400, 404].includes((yield* ping(id)).status), `id ${JSON.stringify(id).slice(0, 20)}`)
    }))

  test("a message with more than 2,000 values gets 400, wherever the values are", ({ send }) =>
    Effect.gen(function* () {
      const wide = Object.fromEntries(Array.from({ length: 2_000 }, (_, n) => [n.toString(36), 1]))
      for (const params of [
        { name: "greeting", arguments: wide },
        { capabilities: { experimental: wide } },
        { clientInfo: { icons: Array(500_000).fill(1) } },
        { _meta: { a: { b: [[[wide]]] } } }
      ]) {
        const { status } = yield* send({ jsonrpc: "2.0", id: 1, method: "initialize", params })
        assert.strictEqual(status, 400)
      }
    }))

  test("bytes that are not JSON in UTF-8 get 400 with the code -32700", ({ send }) =>
    Effect.gen(function* () {
      for (const text of ["", "{", "\xff{}", '{"a":"\xe9"}']) {
        const { status, message } = yield* send(Buffer.from(text, "latin1"))
        assert.deepStrictEqual([status, message.error.code], [400, -32700])
      }
    }))
})

describe("the errors of the package", () => {
  const long = "x".repeat(100_000)
  const name = "greeting"
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
    test(`an error repeats at most 100 characters of a long ${what}`, ({ send }) =>
      Effect.gen(function* () {
        const message = { jsonrpc: "2.0", id: 1, method: "prompts/get", params: { name }, ...fields }
        const responses = yield* Effect.forEach([headers, {}], (all) => send(message, all))
        const errors = responses.filter(({ message }) => message.error !== undefined)
        assert.isNotEmpty(errors)
        for (const { size, message: response } of errors) {
          assert.isBelow(size, 1_000)
          assert.notInclude(JSON.stringify(response), "x".repeat(101))
        }
      }))
})
