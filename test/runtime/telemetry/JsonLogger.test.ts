import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Formatter from "effect/Formatter"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as Schema from "effect/Schema"
import * as TestClock from "effect/testing/TestClock"
import { formatEntry, formatJsonLine } from "../../../src/runtime/telemetry/JsonLogger.ts"

const collectLines = Effect.fnUntraced(function* <A, E, R>(program: Effect.Effect<A, E, R>) {
  const lines: Array<string> = []
  const logger = Logger.map(formatJsonLine, (line) => void lines.push(line))
  yield* program.pipe(
    Effect.provide(Logger.layer([logger])),
    Effect.provideService(References.MinimumLogLevel, "All")
  )
  return lines
})

const collectEntries = <A, E, R>(program: Effect.Effect<A, E, R>) =>
  Effect.map(collectLines(program), (lines) => lines.map((line) => JSON.parse(line)))

const time = "1970-01-01T00:00:00.000Z"
const header = { time, level: "info", msg: "message" }

describe("a JSON log line", () => {
  it.effect("a JSON log line is an object with time, level and msg, followed by the fields", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_767_225_600_123)
      assert.deepStrictEqual(
        yield* collectLines(Effect.logInfo("request", { method: "GET", route: null, status: 200 })),
        [
          '{"time":"2026-01-01T00:00:00.123Z","level":"info","msg":"request","method":"GET","route":null,"status":200}'
        ]
      )
    })
  )

  it.effect("a JSON log line has the level in lowercase", () =>
    Effect.gen(function* () {
      const all = [Effect.logTrace, Effect.logDebug, Effect.logInfo, Effect.logWarning, Effect.logError]
      const entries = yield* collectEntries(Effect.forEach([...all, Effect.logFatal], (log) => log("")))
      assert.deepStrictEqual(
        entries.map(({ level }) => level),
        ["trace", "debug", "info", "warn", "error", "fatal"]
      )
    })
  )

  it.effect("a JSON log line has annotations as fields, and no spans or fiber ids", () =>
    Effect.gen(function* () {
      const log = Effect.logInfo("message", { a: 1 }).pipe(
        Effect.annotateLogs({ request_id: "id" }),
        Effect.withLogSpan("span")
      )
      assert.deepStrictEqual(yield* collectEntries(log), [{ ...header, request_id: "id", a: 1 }])
    })
  )

  it.effect("a JSON log line contains a cause or an error as text in the field err", () =>
    Effect.gen(function* () {
      const [failed, died] = yield* collectEntries(
        Effect.all([
          Effect.sandbox(Effect.die(new Error("went wrong"))).pipe(
            Effect.catch((cause) => Effect.logError("failed", cause))
          ),
          Effect.logError("failed", new TypeError("went wrong"))
        ])
      )
      assert.match(failed.err, /^Error: went wrong\n +at /)
      assert.match(died.err, /^TypeError: went wrong\n +at /)
      assert.deepStrictEqual(
        [failed, died].map(({ err: _, ...rest }) => rest),
        [1, 2].map(() => ({ time, level: "error", msg: "failed" }))
      )
    })
  )

  it.effect("the msg of a JSON log line contains every logged value except errors and plain objects", () =>
    Effect.gen(function* () {
      const message = ["one", 2, true, null, ["three", 4], new Date(0)]
      assert.deepStrictEqual(yield* collectEntries(Effect.logInfo(...message)), [
        { ...header, msg: `one 2 true null ["three",4] "${time}"` }
      ])
    })
  )

  it.effect("a JSON log line keeps its own time, level and msg if fields have these names", () =>
    Effect.gen(function* () {
      const fields = { time: 1, level: 2, msg: 3, other: 4 }
      const log = Effect.annotateLogs(Effect.logInfo("message", fields), fields)
      assert.deepStrictEqual(yield* collectEntries(log), [{ ...header, other: 4 }])
    })
  )

  it.effect("a JSON log line contains <redacted> in place of a redacted value", () =>
    Effect.gen(function* () {
      const secret = Redacted.make("key_live_secret")
      const log = Effect.annotateLogs(Effect.logInfo("message", secret, { a: { b: secret } }), { c: secret })
      const [line] = yield* collectLines(log)
      assert.notInclude(line, "secret")
      assert.deepStrictEqual(JSON.parse(line!), {
        ...header,
        msg: 'message "<redacted>"',
        c: "<redacted>",
        a: { b: "<redacted>" }
      })
    })
  )
})

const makeEntry = (field: unknown) => ({ ...header, field })

it.prop(
  "formatEntry writes JSON fields as Effect's own formatter does",
  { field: Schema.Json },
  ({ field }) => {
    assert.strictEqual(formatEntry(makeEntry(field)), Formatter.formatJson(makeEntry(field)))
  }
)
