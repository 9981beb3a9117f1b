import { setTimeout } from "node:timers/promises"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import type { JsonObject } from "../../../../src/domain/Json.ts"
import type { PromptCatalog } from "../../../../src/adapters/inbound/mcp/PromptCatalog.ts"
import { serveStdio } from "../../../../src/adapters/inbound/mcp/StdioServer.ts"

/** A catalog whose prompts take as many milliseconds as their names say. */
const slowCatalog: PromptCatalog = {
  list: () => Effect.die(new Error("broken")),
  get: (name) => Effect.as(Effect.sleep(Number(name)), { prompt_type: "user", content: name, slots: [] })
}

/** Sends lines, some milliseconds after each other, and returns the messages that are written until the end. */
const exchange = async (
  lines: ReadonlyArray<string | JsonObject>,
  pause = 0
): Promise<ReadonlyArray<JsonObject>> => {
  const written: Array<JsonObject> = []
  const input = (async function* () {
    for (const line of lines) {
      yield Buffer.from(`${typeof line === "string" ? line : JSON.stringify(line)}\n`)
      await setTimeout(pause)
    }
  })()
  const writeLine = async (line: string) => {
    written.push(JSON.parse(line))
  }
  await Effect.runPromise(serveStdio({ input, writeLine }, slowCatalog))
  return written
}

const get = (id: number, name: string) => ({ jsonrpc: "2.0", id, method: "prompts/get", params: { name } })

describe("serveStdio", () => {
  it("runs requests at the same time, and completes all of them after the input has ended", async () => {
    const written = await exchange([get(1, "60"), get(2, "1")])
    assert.deepStrictEqual(
      written.map(({ id, result }) => [id, result !== undefined]),
      [
        [2, true],
        [1, true]
      ]
    )
  })

  it("writes no response to a request that the client cancels", async () => {
    const cancel = { jsonrpc: "2.0", method: "notifications/cancelled", params: { requestId: 1 } }
    const written = await exchange([get(1, "10000"), get(2, "1"), cancel], 5)
    assert.deepStrictEqual(
      written.map(({ id }) => id),
      [2]
    )
  })

  it("responds to lines that are no messages, and to requests that fail, and goes on", async () => {
    const written = await exchange([
      "{",
      "[]",
      "x".repeat(1024 * 1024 + 1),
      { jsonrpc: "2.0", method: "notifications/initialized" },
      { jsonrpc: "2.0", id: 1, method: "subscriptions/listen", params: {} },
      { jsonrpc: "2.0", id: 2, method: "prompts/list" },
      { jsonrpc: "2.0", id: 3, method: "ping" }
    ])
    assert.deepStrictEqual(
      written
        .map(({ id, error }) => [id, (error as { readonly code?: number } | undefined)?.code])
        .sort(([a = 0], [b = 0]) => Number(a) - Number(b)),
      [
        [undefined, -32700],
        [undefined, -32600],
        [undefined, 413],
        [1, -32601],
        [2, -32603],
        [3, undefined]
      ]
    )
  })
})
