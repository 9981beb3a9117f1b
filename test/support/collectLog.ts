import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"

/** Runs an effect, and returns the messages that it logs. */
export const collectLog = Effect.fnUntraced(function* <A, E, R>(work: Effect.Effect<A, E, R>) {
  const lines: Array<unknown> = []
  yield* Effect.provide(work, Logger.layer([Logger.make(({ message }) => lines.push(message))]))
  return lines
})
