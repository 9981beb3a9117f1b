import { assert, it } from "@effect/vitest"
import * as Formatter from "effect/Formatter"
import * as Redacted from "effect/Redacted"
import * as Schema from "effect/Schema"
import { formatEntry } from "../../../src/runtime/telemetry/JsonLogger.ts"

it.prop("writes any entry as Effect's own JSON logger does", { message: Schema.Json }, ({ message }) => {
  const entry = { message, level: "INFO", cause: undefined, annotations: {} }
  assert.strictEqual(formatEntry(entry), Formatter.formatJson(entry))
})

const circular: Record<string, unknown> = { name: "circular" }
circular.self = circular

it.each([
  [1n],
  [Number.NaN],
  [Symbol("symbol")],
  [() => 1],
  [new Error("went wrong")],
  [new Date(0)],
  [new Map([["key", "value"]])],
  [circular],
  [["request", { deep: { deeper: { deepest: 1n } } }]]
])("as well where JSON alone would fail or say less: %o", (message) => {
  assert.strictEqual(formatEntry({ message }), Formatter.formatJson({ message }))
})

it("says nothing of what is redacted", () => {
  const entry = { message: ["key", { key: Redacted.make("key_live_secret") }] }
  assert.strictEqual(formatEntry(entry), Formatter.formatJson(entry))
  assert.notInclude(formatEntry(entry), "secret")
})
