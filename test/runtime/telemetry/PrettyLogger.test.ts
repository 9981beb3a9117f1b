import { stripVTControlCharacters } from "node:util"
import { assert, it } from "@effect/vitest"
import { formatEntry } from "../../../src/runtime/telemetry/PrettyLogger.ts"

const time = "2026-01-01T12:34:56.789Z"
const format = (entry: Parameters<typeof formatEntry>[0]) => stripVTControlCharacters(formatEntry(entry))

it("the pretty log format writes a request on one line, without null fields", () => {
  const fields = { method: "GET", route: null, status: 200, nested: { list: [1, "x".repeat(100)] } }
  assert.strictEqual(
    format({ time, level: "info", msg: "request", ...fields }),
    `12:34:56.789 INFO  request method=GET status=200 nested={ list: [ 1, '${"x".repeat(100)}' ] }`
  )
})

it("the pretty log format writes an error below the line", () => {
  assert.strictEqual(
    format({ time, level: "error", msg: "Request failed", request_id: "id", err: "Error: no\n    at x" }),
    "12:34:56.789 ERROR Request failed request_id=id\nError: no\n    at x"
  )
})
