import * as Effect from "effect/Effect"

const terminalIntervalMs = 250
const lineIntervalMs = 5_000

/**
 * Shows the progress of an effect on stderr, after a label such as `Importing`. A terminal shows the progress in one
 * line. Any other output gets a new line every few seconds. An effect that ends before the first interval shows
 * nothing.
 *
 * @param describe returns the text after the label; by default, the time since the start
 */
export const withProgress =
  (label: string, describe?: () => string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const isTerminal = process.stderr.isTTY === true
      const startedAt = Date.now()
      const show = () => {
        const text = `${label}: ${describe?.() ?? `${Math.round((Date.now() - startedAt) / 1000)} s`}`
        process.stderr.write(isTerminal ? `\r\x1b[K${text}` : `${text}\n`)
      }
      const showRepeatedly = Effect.forever(
        Effect.delay(Effect.sync(show), isTerminal ? terminalIntervalMs : lineIntervalMs)
      )
      const erase = Effect.sync(() => {
        if (isTerminal) process.stderr.write("\r\x1b[K")
      })
      return Effect.ensuring(Effect.raceFirst(effect, showRepeatedly), erase)
    })
