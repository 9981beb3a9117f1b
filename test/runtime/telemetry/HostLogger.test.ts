import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as References from "effect/References"
import { type HostLogger, layer } from "../../../src/runtime/telemetry/HostLogger.ts"

const log = () => {}
it.effect.each<readonly [HostLogger, string]>([
  [{ debug: log, warn: log }, "All"],
  [{ info: log, warn: log }, "Info"],
  [{ warn: log }, "Warn"]
])(
  "no line is formatted below the lowest level for which %o has a function, which is %s",
  ([logger, level]) =>
    Effect.gen(function* () {
      assert.strictEqual(yield* References.MinimumLogLevel, level)
    }).pipe(Effect.provide(layer(logger)))
)
