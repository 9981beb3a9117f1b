import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import * as TestClock from "effect/testing/TestClock"
import { ConnectionError, SqlError } from "effect/sql/SqlError"
import { makeUnavailableMapper } from "../../../../../src/adapters/outbound/postgres/driver/UnavailableMapper.ts"
import { Unavailable } from "../../../../../src/application/ports/Unavailable.ts"

const refuse = (message: string): Effect.Effect<never, SqlError> =>
  Effect.fail(new SqlError({ reason: new ConnectionError({ cause: new Error(message), message }) }))

it.effect(
  "a database that cannot be used is logged at once, again every minute, and after it has recovered",
  () => {
    const lines: Array<string> = []
    const logger = Logger.make(({ logLevel, message }) => void lines.push(`${logLevel}: ${message}`))
    return Effect.gen(function* () {
      const mapToUnavailable = makeUnavailableMapper()
      const noDatabase = mapToUnavailable(refuse('database "prompts" does not exist'))
      // The start retries every 500 ms.
      for (let attempt = 0; attempt <= 240; attempt++) {
        assert.strictEqual(yield* Effect.flip(noDatabase), Unavailable)
        yield* TestClock.adjust("500 millis")
      }
      const warning = 'Warn: PostgreSQL is unavailable: database "prompts" does not exist'
      assert.deepStrictEqual(lines.splice(0), [warning, warning, warning])
      yield* Effect.flip(mapToUnavailable(refuse('role "ada" does not exist')))
      assert.deepStrictEqual(lines.splice(0), ['Warn: PostgreSQL is unavailable: role "ada" does not exist'])
      yield* mapToUnavailable(Effect.void)
      yield* Effect.flip(noDatabase)
      assert.deepStrictEqual(lines, [warning])
    }).pipe(Effect.provide(Logger.layer([logger])))
  }
)
