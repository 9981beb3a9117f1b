import type { JsonObject } from "../../../../src/domain/Json.ts"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeInvalidParams, type RpcError } from "../../../../src/adapters/inbound/mcp/JsonRpc.ts"
import { type MethodContext, runMethod } from "../../../../src/adapters/inbound/mcp/Methods.ts"
import type { PromptCatalog } from "../../../../src/adapters/inbound/mcp/PromptCatalog.ts"
import { programVersion } from "../../../../src/application/ProgramVersion.ts"

const unavailable: RpcError = { code: 503, message: "Service unavailable", status: 503 }

const catalog: PromptCatalog = {
  list: (cursor) =>
    Effect.succeed({
      prompts: [
        { name: "greeting", title: "Greeting", description: "Greets.", slots: ["name", "tone"] },
        { name: `after-${cursor}`, title: "Other", description: "", slots: [] }
      ],
      nextCursor: cursor === undefined ? "next" : undefined
    }),
  get: (name) => {
    if (name === "away") return Effect.fail(unavailable)
    if (name !== "greeting") return Effect.fail(makeInvalidParams(`Unknown prompt: ${name}`))
    const content = "Greet {{name}} in a {{tone}} tone. {{ name }}!"
    return Effect.succeed({ prompt_type: "assistant", content, slots: ["name", "tone"] })
  }
}

const run = (method: string, params: JsonObject = {}, mode: MethodContext["mode"] = "initialized") =>
  runMethod({ _tag: "Request", id: 1, method, params }, { mode, catalog })

const _meta = {
  "io.modelcontextprotocol/serverInfo": {
    name: "prompt-retrieval",
    title: "Prompts",
    version: programVersion
  }
}
const values = { name: "Ada", tone: "{{name}}" }
const text = "Greet Ada in a {{name}} tone. Ada!"

describe("prompts/list", () => {
  it.effect(
    "in protocol version 2026-07-28, the result of prompts/list says that a page is private and how long the page is fresh",
    () =>
      Effect.gen(function* () {
        for (const cursor of [undefined, "next"]) {
          const {
            ttlMs,
            cacheScope,
            resultType,
            _meta: meta
          } = yield* run("prompts/list", { cursor }, "stateless")
          assert.deepStrictEqual({ ttlMs, cacheScope, resultType, _meta: meta }, {
            ttlMs: 30_000,
            cacheScope: "private",
            resultType: "complete",
            _meta
          } as never)
        }
      })
  )
})

describe("prompts/get", () => {
  it.effect.each([
    [{}, "name is missing"],
    [{ name: 1 }, "name must be a string"],
    [{ name: "other" }, "Unknown prompt: other"],
    [{ name: "greeting" }, "Missing argument: name, tone"],
    [{ name: "greeting", arguments: { name: "Ada" } }, "Missing argument: tone"],
    [
      { name: "greeting", arguments: { ...values, mood: "x", toString: "y" } },
      "Unknown argument: mood, toString"
    ],
    [{ name: "greeting", arguments: { ...values, name: 1 } }, "Argument must be a string: name"],
    [{ name: "greeting", arguments: [] }, "arguments must be an object"],
    [
      { name: "greeting", arguments: JSON.parse('{"__proto__":"x","name":"a","tone":"b"}') },
      "Unknown argument: __proto__"
    ]
  ] as ReadonlyArray<[JsonObject, string]>)(
    "prompts/get rejects the parameters %j with the code -32602 and the message: %s",
    ([params, message]) =>
      Effect.gen(function* () {
        assert.include(yield* Effect.flip(run("prompts/get", params)), { code: -32602, message, status: 200 })
      })
  )

  const getFrom = (content: string, slots: ReadonlyArray<string>, values: Readonly<Record<string, string>>) =>
    runMethod(
      { _tag: "Request", id: 1, method: "prompts/get", params: { name: "a", arguments: values } },
      {
        mode: "initialized",
        catalog: { ...catalog, get: () => Effect.succeed({ prompt_type: "user", content, slots }) }
      }
    )

  it.effect.each(["x".repeat(1024 * 1024), "\u20ac".repeat(4 * 1024)])(
    "prompts/get fails if the content exceeds 1 MiB after the arguments are inserted",
    (value) =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(getFrom("{{a}}".repeat(1_000), ["a"], { a: value }))
        assert.deepStrictEqual(
          [error.code, error.status, error.data],
          [422, 200, { code: "RESOLVED_TOO_LARGE" }]
        )
      })
  )

  it.effect("prompts/get names only the first 5 of many missing or unknown arguments", () =>
    Effect.gen(function* () {
      const slots = Array.from({ length: 20_000 }, (_, n) => `slot${n}`)
      const missing = yield* Effect.flip(getFrom("", slots, {}))
      assert.strictEqual(
        missing.message,
        "Missing argument: slot0, slot1, slot2, slot3, slot4 and 19995 more"
      )
      const unknown = Array.from({ length: 40_000 }, (_, n) => `unknown${n}`)
      const values = Object.fromEntries([...slots, ...unknown].map((name) => [name, ""]))
      const error = yield* Effect.flip(getFrom("", slots, values))
      assert.strictEqual(
        error.message,
        "Unknown argument: unknown0, unknown1, unknown2, unknown3, unknown4 and 39995 more"
      )
    })
  )
})

describe("tools/call", () => {
  it.effect(
    "the tool get_prompt returns the role and the text of the prompt as JSON text and as structured content",
    () =>
      Effect.gen(function* () {
        const structuredContent = { role: "assistant", text }
        const result = yield* run("tools/call", {
          name: "get_prompt",
          arguments: { name: "greeting", arguments: values }
        })
        assert.deepStrictEqual(JSON.parse(JSON.stringify(result)), {
          content: [{ type: "text", text: JSON.stringify(structuredContent) }],
          structuredContent
        })
      })
  )

  it.effect("the tool list_prompts returns a page of prompts", () =>
    Effect.gen(function* () {
      const { structuredContent } = yield* run("tools/call", {
        name: "list_prompts",
        arguments: { cursor: "next" }
      })
      assert.deepStrictEqual(structuredContent, yield* run("prompts/list", { cursor: "next" }))
    })
  )

  it.effect(
    "tools/call reports invalid input as a result with isError, so that a model can correct the input",
    () =>
      Effect.gen(function* () {
        assert.deepStrictEqual(
          yield* run("tools/call", { name: "get_prompt", arguments: { name: "greeting" } }),
          { content: [{ type: "text", text: "Missing argument: name, tone" }], isError: true }
        )
      })
  )

  it.effect("tools/call fails if the store is unavailable, and fails for an unknown tool", () =>
    Effect.gen(function* () {
      const away = run("tools/call", { name: "get_prompt", arguments: { name: "away" } })
      assert.strictEqual(yield* Effect.flip(away), unavailable)
      assert.include(yield* Effect.flip(run("tools/call", { name: "delete_prompt" })), {
        code: -32602,
        message: "Unknown tool: delete_prompt"
      })
    })
  )
})

describe("the methods of a protocol mode", () => {
  const capabilities = { prompts: { listChanged: true }, tools: {} }

  it.effect.each([
    ["2025-11-25", "2025-11-25"],
    ["2025-06-18", "2025-06-18"],
    ["2024-11-05", "2025-11-25"],
    ["2026-07-28", "2025-11-25"]
  ])("initialize with the protocol version %s negotiates the version %s", ([requested, protocolVersion]) =>
    Effect.gen(function* () {
      const { instructions: _, ...result } = yield* run("initialize", { protocolVersion: requested })
      assert.deepStrictEqual(result, {
        protocolVersion,
        capabilities,
        serverInfo: _meta["io.modelcontextprotocol/serverInfo"]
      })
    })
  )

  it.effect(
    "server/discover returns the protocol versions, the capabilities and the name of the server",
    () =>
      Effect.gen(function* () {
        const { instructions: _, ...result } = yield* run("server/discover", {}, "stateless")
        assert.deepStrictEqual(result, {
          resultType: "complete",
          supportedVersions: ["2026-07-28", "2025-11-25", "2025-06-18"],
          capabilities,
          ttlMs: 3_600_000,
          cacheScope: "public",
          _meta
        })
      })
  )

  it.effect.each([
    ["server/discover", "initialized", 200],
    ["initialize", "stateless", 404],
    ["ping", "stateless", 404],
    ["resources/list", "stateless", 404],
    ["resources/list", "initialized", 200],
    ["toString", "initialized", 200],
    ["__proto__", "stateless", 404]
  ] as const)(
    "the method %s is unknown in the mode %s and fails with the status %i",
    ([method, mode, status]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* Effect.flip(run(method, {}, mode)), {
          code: -32601,
          message: `Method not found: ${method}`,
          status
        })
      })
  )
})
