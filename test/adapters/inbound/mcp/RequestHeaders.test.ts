import { assert, describe, it } from "@effect/vitest"
import type { RpcRequest } from "../../../../src/adapters/inbound/mcp/JsonRpc.ts"
import type { JsonObject } from "../../../../src/domain/Json.ts"
import { findModeOfRequest, isAllowedOrigin } from "../../../../src/adapters/inbound/mcp/RequestHeaders.ts"

const stateless = "2026-07-28"
const initialized = "2025-11-25"
const meta = {
  "io.modelcontextprotocol/protocolVersion": stateless,
  "io.modelcontextprotocol/clientCapabilities": {}
}
const request = (method: string, params: JsonObject = {}): RpcRequest => ({
  _tag: "Request",
  id: 1,
  method,
  params
})
const get = (name: unknown, _meta: JsonObject = meta) => request("prompts/get", { name, _meta })
const headers = (more: Readonly<Record<string, string>> = {}) => ({
  "mcp-protocol-version": stateless,
  "mcp-method": "prompts/get",
  "mcp-name": "greeting",
  ...more
})

/** Returns the mode, or the code and the status of the error. */
const outcome = (found: ReturnType<typeof findModeOfRequest>) =>
  typeof found === "string" ? found : [found.code, found.status]

describe("findModeOfRequest", () => {
  it.each([
    ["no version", {}, request("initialize")],
    ["a header of an earlier version", { "mcp-protocol-version": initialized }, request("prompts/list")],
    [
      "the same earlier version in the header and in _meta",
      { "mcp-protocol-version": initialized },
      request("ping", { _meta: { ...meta, "io.modelcontextprotocol/protocolVersion": initialized } })
    ]
  ])("findModeOfRequest returns initialized for %s", (_, headers, message) => {
    assert.strictEqual(outcome(findModeOfRequest(headers, message)), "initialized")
  })

  it.each([
    ["plain headers", headers(), get("greeting")],
    ["a name in base64", headers({ "mcp-name": "=?base64?w6RiYw==?=" }), get("äbc")],
    ["a name that is not a string, which the method rejects", headers(), get(1)],
    [
      "a method without a name",
      headers({ "mcp-method": "prompts/list" }),
      request("prompts/list", { _meta: meta })
    ]
  ])("findModeOfRequest returns stateless for %s", (_, headers, message) => {
    assert.strictEqual(outcome(findModeOfRequest(headers, message)), "stateless")
  })

  const without = (key: keyof typeof meta) => ({ ...meta, [key]: undefined })
  it.each([
    ["no header", {}, get("greeting"), -32020],
    [
      "another version in the header",
      headers({ "mcp-protocol-version": initialized }),
      get("greeting"),
      -32020
    ],
    ["no _meta", headers(), get("greeting", {}), -32602],
    [
      "no version in _meta",
      headers(),
      get("greeting", without("io.modelcontextprotocol/protocolVersion")),
      -32602
    ],
    [
      "no capabilities",
      headers(),
      get("greeting", without("io.modelcontextprotocol/clientCapabilities")),
      -32602
    ],
    ["another method", headers({ "mcp-method": "prompts/list" }), get("greeting"), -32020],
    ["a method in capitals", headers({ "mcp-method": "PROMPTS/GET" }), get("greeting"), -32020],
    ["another name", headers({ "mcp-name": "other" }), get("greeting"), -32020],
    ["a name in base64 that is not UTF-8", headers({ "mcp-name": "=?base64?/w==?=" }), get("\ufffd"), -32020],
    ["an unknown version in the header", { "mcp-protocol-version": "v9" }, request("ping"), -32022]
  ])("findModeOfRequest returns an error with the status 400 for %s", (_, headers, message, code) => {
    assert.deepStrictEqual(outcome(findModeOfRequest(headers, message)), [code, 400])
  })

  it("the error for an unknown version names the supported versions and the requested version", () => {
    const found = findModeOfRequest(
      headers({ "mcp-protocol-version": "v9" }),
      get("greeting", { ...meta, "io.modelcontextprotocol/protocolVersion": "v9" })
    )
    assert.deepStrictEqual(typeof found === "string" ? found : [found.code, found.data], [
      -32022,
      { supported: [stateless, initialized, "2025-06-18"], requested: "v9" }
    ])
  })

  it("the error for headers that differ from the message names the header that is wrong or missing", () => {
    const { "mcp-method": _, ...others } = headers()
    const found = findModeOfRequest(others, get("greeting"))
    assert.deepInclude(found, { message: "Headers and message differ: Mcp-Method is missing" })
  })

  it("findModeOfRequest requires the header Mcp-Name only if the request has a name", () => {
    const { "mcp-name": _, ...others } = headers()
    assert.deepStrictEqual(outcome(findModeOfRequest(others, get("greeting"))), [-32020, 400])
    assert.strictEqual(outcome(findModeOfRequest(others, get(undefined))), "stateless")
  })
})

it.each<[string | undefined, boolean]>([
  [undefined, true],
  ["http://localhost", true],
  ["http://localhost:6274", true],
  ["https://127.0.0.1:1", true],
  ["http://[::1]:3000", true],
  ["https://prompts.example.com", true],
  ["http://prompts.example.com", false],
  ["https://prompts.example.com.evil.com", false],
  ["http://localhost.evil.com", false],
  ["http://evil.com/localhost", false],
  ["http://localhost@evil.com", false],
  ["http://127.0.0.1.evil.com", false],
  ["null", false],
  ["", false],
  ["file://localhost", false]
])(
  "with the public URL https://prompts.example.com, isAllowedOrigin returns for the origin %j: %j",
  (origin, isAllowed) => {
    assert.strictEqual(isAllowedOrigin(origin, "https://prompts.example.com"), isAllowed)
  }
)

it("without a public URL, isAllowedOrigin rejects the origins of other machines", () => {
  assert.isFalse(isAllowedOrigin("https://prompts.example.com", undefined))
})
