import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import {
  encodeError,
  encodeResult,
  parseMessage,
  rpcCodes
} from "../../../../src/adapters/inbound/mcp/JsonRpc.ts"
import { maxCursorPage, makeCursor, parseCursor } from "../../../../src/adapters/inbound/mcp/PromptCatalog.ts"

const parse = (text: string) => parseMessage(Buffer.from(text))

describe("parseMessage", () => {
  it.each([
    [
      { jsonrpc: "2.0", id: 1, method: "a" },
      { _tag: "Request", id: 1, method: "a", params: {} }
    ],
    [
      { jsonrpc: "2.0", id: "", method: "a", params: { b: 1 } },
      { _tag: "Request", id: "", method: "a", params: { b: 1 } }
    ],
    [
      { jsonrpc: "2.0", method: "a" },
      { _tag: "Notification", method: "a", params: {} }
    ],
    [{ jsonrpc: "2.0", id: 1, result: {} }, { _tag: "Response" }],
    [{ jsonrpc: "2.0", id: 1, error: {} }, { _tag: "Response" }]
  ])("parseMessage parses %j", (message, parsed) => {
    assert.deepStrictEqual(parse(JSON.stringify(message)), Result.succeed(parsed as never))
  })

  it.each([
    ["", undefined, rpcCodes.parseError],
    ["{", undefined, rpcCodes.parseError],
    ["[]", undefined, rpcCodes.invalidRequest],
    ['[{"jsonrpc":"2.0","id":1,"method":"a"}]', undefined, rpcCodes.invalidRequest],
    ["1", undefined, rpcCodes.invalidRequest],
    ["null", undefined, rpcCodes.invalidRequest],
    ['{"id":1,"method":"a"}', 1, rpcCodes.invalidRequest],
    ['{"jsonrpc":"2.0","id":7}', 7, rpcCodes.invalidRequest],
    ['{"jsonrpc":"2.0","id":null,"method":"a"}', undefined, rpcCodes.invalidRequest],
    ['{"jsonrpc":"2.0","id":1.5,"method":"a"}', undefined, rpcCodes.invalidRequest],
    ['{"jsonrpc":"2.0","id":1e400,"method":"a"}', undefined, rpcCodes.invalidRequest],
    ['{"jsonrpc":"2.0","id":"x","method":1}', "x", rpcCodes.invalidRequest],
    ['{"jsonrpc":"2.0","id":"x","method":"a","params":[]}', "x", rpcCodes.invalidRequest]
  ])("parseMessage rejects %j with the id %j and the code %i", (text, id, code) => {
    const parsed = parse(text)
    assert.isTrue(Result.isFailure(parsed))
    if (Result.isFailure(parsed))
      assert.deepStrictEqual([parsed.failure.id, parsed.failure.error.code], [id, code])
  })

  it("parseMessage accepts an id of 256 characters, and rejects a longer id without repeating the id", () => {
    const make = (id: string) => parse(JSON.stringify({ jsonrpc: "2.0", id, method: "a" }))
    assert.isTrue(Result.isSuccess(make("x".repeat(256))))
    const parsed = make("x".repeat(257))
    assert.isTrue(Result.isFailure(parsed))
    if (Result.isFailure(parsed))
      assert.deepStrictEqual(
        [parsed.failure.id, parsed.failure.error.code],
        [undefined, rpcCodes.invalidRequest]
      )
  })

  it("parseMessage rejects bytes that are not UTF-8", () => {
    const bytes = Buffer.from('{"jsonrpc":"2.0","id":1,"method":"\xff"}', "latin1")
    assert.isTrue(Result.isFailure(parseMessage(bytes)))
  })
})

it("a JSON-RPC result has the id of its request, and an error has no id if the id of the request is unknown", () => {
  assert.strictEqual(encodeResult("a", { b: 1 }), '{"jsonrpc":"2.0","id":"a","result":{"b":1}}')
  assert.strictEqual(
    encodeError(undefined, { code: 1, message: "m", status: 400 }),
    '{"jsonrpc":"2.0","error":{"code":1,"message":"m"}}'
  )
})

describe("parseCursor", () => {
  it.each([2, 3, 200, maxCursorPage])(
    "parseCursor returns page %i for the cursor that makeCursor makes for this page",
    (page) => {
      assert.strictEqual(parseCursor(makeCursor(page)), page)
    }
  )

  it.effect.prop(
    "parseCursor returns a page only for a cursor that makeCursor makes for the page",
    { text: Schema.String },
    ({ text }) => {
      const page = parseCursor(text)
      if (page !== undefined) assert.strictEqual(makeCursor(page), text)
      return Effect.void
    }
  )

  it.each([
    "",
    "1",
    makeCursor(1),
    makeCursor(0),
    makeCursor(-2),
    makeCursor(2.5),
    makeCursor(maxCursorPage + 1)
  ])("parseCursor rejects %j", (cursor) => {
    assert.isUndefined(parseCursor(cursor))
  })
})
