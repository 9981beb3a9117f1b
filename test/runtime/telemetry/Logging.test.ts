import { once } from "node:events"
import { Writable } from "node:stream"
import { setImmediate } from "node:timers/promises"
import { stripVTControlCharacters } from "node:util"
import { assert, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as TestClock from "effect/testing/TestClock"
import {
  formatJson,
  formatPretty,
  makeStreamLogger,
  toLogEntry
} from "../../../src/runtime/telemetry/Logging.ts"
import { makeTest } from "../../support/makeTest.ts"

const test = makeTest(it.effect)

const nextTurn = Effect.promise(() => setImmediate())

/** Runs a program and returns the lines that it logs in the JSON format. */
const collectLines = Effect.fnUntraced(function* <A, E, R>(program: Effect.Effect<A, E, R>) {
  const lines: Array<string> = []
  const logger = Logger.make((options) => void lines.push(formatJson(toLogEntry(options))))
  yield* Effect.provide(program, Logger.layer([logger]))
  return lines
})

const time = "1970-01-01T00:00:00.000Z"
test("a JSON log line is an object with time, level and msg, followed by annotations and fields", function* () {
  yield* TestClock.setTime(1_767_225_600_123)
  const log = Effect.logInfo("request", { method: "GET", route: null, status: 200 }).pipe(
    Effect.annotateLogs({ request_id: "id" }),
    Effect.withLogSpan("span")
  )
  assert.deepStrictEqual(yield* collectLines(log), [
    '{"time":"2026-01-01T00:00:00.123Z","level":"info","msg":"request","request_id":"id","method":"GET","route":null,"status":200}'
  ])
})

test("a JSON log line contains a cause or an error as text in the field err", function* () {
  const error = new TypeError("went wrong")
  for (const logged of [Cause.die(error), error]) {
    const [line] = yield* collectLines(Effect.logError("failed", logged))
    const { err, ...entry } = JSON.parse(line!)
    assert.match(err, /^TypeError: went wrong\n +at /)
    assert.deepStrictEqual(entry, { time, level: "error", msg: "failed" })
  }
})

const circular: Record<string, unknown> = { big: 2n ** 64n }
circular.self = circular
const secret = Redacted.make("key_live_secret")
const header = { time, level: "info", msg: "message" }

it.effect.each<readonly [string, ReadonlyArray<unknown>, object]>([
  [
    "contains in msg every logged value that is neither an error nor a plain object",
    ["one", 2, true, null, ["three", 4], new Date(0)],
    { ...header, msg: `one 2 true null ["three",4] "${time}"` }
  ],
  [
    "keeps its own time, level and msg if fields have these names",
    ["message", { time: 1, level: 2, msg: 3, other: 4 }],
    { ...header, other: 4 }
  ],
  [
    "contains a bigint as text, and no circular reference",
    ["message", { circular }],
    { ...header, circular: { big: "18446744073709551616n" } }
  ],
  [
    "contains <redacted> in place of a redacted value",
    ["message", secret, { a: { b: secret } }],
    { ...header, msg: 'message "<redacted>"', a: { b: "<redacted>" } }
  ]
])("a JSON log line %s", ([, message, entry]) =>
  Effect.gen(function* () {
    const [line] = yield* collectLines(Effect.logInfo(...message))
    assert.deepStrictEqual(JSON.parse(line!), entry)
  })
)

it("the pretty log format writes a request on one line, without null fields, and an error below the line", () => {
  const fields = {
    method: "GET",
    route: null,
    nested: { list: [1, "x".repeat(100)] },
    err: "Error: no\n    at x"
  }
  const line = formatPretty({ time: "2026-01-01T12:34:56.789Z", level: "info", msg: "request", ...fields })
  assert.strictEqual(
    stripVTControlCharacters(line),
    `12:34:56.789 INFO  request method=GET nested={"list":[1,"${"x".repeat(100)}"]}\nError: no\n    at x`
  )
})

makeTest(it.live)(
  "while nothing reads the log, the logger drops lines beyond 4 MiB, and logs their number when the reader resumes",
  function* () {
    const texts: Array<string> = []
    const resumed = Promise.withResolvers<void>()
    const stream = new Writable({
      write: (chunk, _, done) => {
        texts.push(String(chunk))
        void resumed.promise.then(() => done())
      }
    })
    const logger = yield* makeStreamLogger(stream, formatJson)
    const provideLogger = Effect.provide(Logger.layer([logger]))
    const logLine = Effect.logInfo("line", { text: "x".repeat(10_000) })
    const [turns, linesPerTurn] = [40, 50]
    for (let turn = 0; turn < turns; turn++) {
      yield* provideLogger(Effect.repeat(logLine, { times: linesPerTurn - 1 }))
      yield* nextTurn
      assert.isBelow(stream.writableLength, 5 * 1024 * 1024)
    }
    resumed.resolve()
    yield* Effect.promise(() => once(stream, "drain"))
    yield* nextTurn
    yield* provideLogger(Effect.logInfo("again"))
    yield* nextTurn
    yield* nextTurn
    const text = texts.join("")
    const report = /"level":"warn","msg":"Log reader too slow; lines dropped","dropped":(\d+)/.exec(text)
    const written = text.match(/x{10000}/g)?.length ?? 0
    assert.isBelow(written, turns * linesPerTurn)
    assert.strictEqual(written + Number(report?.[1]), turns * linesPerTurn)
    assert.match(text, /again"}\n$/)
  }
)
