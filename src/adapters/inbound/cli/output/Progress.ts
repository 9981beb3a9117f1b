import * as Effect from "effect/Effect"

const terminalIntervalMs = 250
const lineIntervalMs = 5_000

/**
 * Shows on stderr for how long an effect has been running, after a label such as `Importing`. A terminal shows the time
 * in one line. Any other output gets a new line every few seconds. An effect that ends before the first interval shows
 * nothing.
 */
export const withProgress =
  (label: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const isTerminal = process.stderr.isTTY === true
      const startedAt = Date.now()
      const show = Effect.sync(() => {
        const text = `${label}: ${Math.round((Date.now() - startedAt) / 1000)} s`
        process.stderr.write(isTerminal ? `\r\x1b[K${text}` : `${text}\n`)
      })
      const erase = Effect.sync(() => {
        if (isTerminal) process.stderr.write("\r\x1b[K")
      })
      const showRepeatedly = Effect.forever(
        Effect.delay(show, isTerminal ? terminalIntervalMs : lineIntervalMs)
      )
      return Effect.ensuring(Effect.raceFirst(effect, showRepeatedly), erase)
    })
