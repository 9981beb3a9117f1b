import { once } from "node:events"
import { Writable } from "node:stream"
import { setImmediate } from "node:timers/promises"
import { stripVTControlCharacters } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import * as References from "effect/References"
import * as TestClock from "effect/testing/TestClock"
import {
  formatJson,
  formatPretty,
  makeStreamLogger,
  toLogEntry
} from "../../../src/runtime/telemetry/Logging.ts"

const nextTurn = Effect.promise(() => setImmediate())

const collectLines = Effect.fnUntraced(function* <A, E, R>(program: Effect.Effect<A, E, R>) {
  const lines: Array<string> = []
  const logger = Logger.make((options) => void lines.push(formatJson(toLogEntry(options))))
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

  it.effect("a JSON log line contains a bigint as text, and no circular reference", () =>
    Effect.gen(function* () {
      const circular: Record<string, unknown> = { big: 2n ** 64n }
      circular.self = circular
      assert.deepStrictEqual(yield* collectEntries(Effect.logInfo("message", { circular })), [
        { ...header, circular: { big: "18446744073709551616n" } }
      ])
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

describe("the pretty log format", () => {
  const time = "2026-01-01T12:34:56.789Z"
  const format = (entry: Parameters<typeof formatPretty>[0]) => stripVTControlCharacters(formatPretty(entry))

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
})

/** A stream whose reader reads nothing until `resume` is called. `texts` holds what was read. */
const makeStoppedReader = () => {
  const texts: Array<string> = []
  let resume = () => {}
  const resumed = new Promise<void>((resolve) => {
    resume = resolve
  })
  const stream = new Writable({
    write: (chunk, _, done) => {
      texts.push(String(chunk))
      void resumed.then(() => done())
    }
  })
  return { stream, texts, resume }
}

it.live.each([
  ["json", formatJson, /"level":"warn","msg":"Log reader too slow; lines dropped","dropped":(\d+)/],
  ["pretty", formatPretty, /WARN\S* +Log reader too slow; lines dropped dropped=(\d+)/]
] as const)(
  "while nothing reads the %s log, lines beyond 4 MiB are dropped, and their number is logged when the reader resumes",
  ([, format, pattern]) =>
    Effect.scoped(
      Effect.gen(function* () {
        const { stream, texts, resume } = makeStoppedReader()
        const logger = yield* makeStreamLogger(stream, format)
        const provideLogger = Effect.provide(Logger.layer([logger]))
        const logLine = Effect.logInfo("line", { text: "x".repeat(10_000) })
        const [turns, linesPerTurn] = [40, 50]
        for (let turn = 0; turn < turns; turn++) {
          yield* provideLogger(Effect.repeat(logLine, { times: linesPerTurn - 1 }))
          yield* nextTurn
          assert.isBelow(stream.writableLength, 5 * 1024 * 1024)
        }
        resume()
        yield* Effect.promise(() => once(stream, "drain"))
        yield* nextTurn
        yield* provideLogger(Effect.logInfo("again"))
        yield* nextTurn
        yield* nextTurn
        const text = texts.join("")
        const dropped = Number(pattern.exec(text)?.[1])
        const written = text.match(/x{10000}/g)?.length ?? 0
        assert.isAbove(dropped, 0)
        assert.strictEqual(written + dropped, turns * linesPerTurn)
        assert.match(text.trimEnd().split("\n").at(-1)!, /again/)
      })
    )
)
