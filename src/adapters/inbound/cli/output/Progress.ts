import * as Effect from "effect/Effect"

/** How often a line is written if stderr is not a terminal, in milliseconds. */
const lineIntervalMs = 5_000

/** How often the bar is drawn, in milliseconds. */
const barIntervalMs = 100

const barLength = 30

/** The work that a progress indicator shows. */
export interface Work {
  /** The verb, such as `Importing`. */
  readonly label: string
  readonly total: number
  readonly unit: "bytes" | "files"
}

/** A progress indicator. */
export interface Progress {
  /** Adds bytes or files that are done. */
  readonly add: (count: number) => void
  /** Removes the bar from the terminal. */
  readonly end: () => void
}

const describeTotal = ({ total, unit }: Work): string =>
  unit === "bytes" ? `${(total / 1024 / 1024).toFixed(1)} MiB` : `${total} files`

/**
 * Makes a progress indicator on stderr: a bar if stderr is a terminal, otherwise a line every few seconds. Work that
 * ends earlier shows nothing.
 */
export const makeProgress = (work: Work): Progress => {
  const { label, total } = work
  const isBar = process.stderr.isTTY === true
  let done = 0
  let isDrawn = false
  let lastDrawnAt = Date.now()
  const render = (): string => {
    const fraction = total === 0 ? 1 : Math.min(done / total, 1)
    const filled = Math.round(fraction * barLength)
    const percent = `${Math.floor(fraction * 100)}%`.padStart(4)
    const bar = isBar ? `[${"#".repeat(filled)}${" ".repeat(barLength - filled)}] ` : ""
    return `${bar}${percent} of ${describeTotal(work)}`
  }
  return {
    add: (count) => {
      done += count
      if (Date.now() - lastDrawnAt < (isBar ? barIntervalMs : lineIntervalMs)) return
      lastDrawnAt = Date.now()
      isDrawn = true
      process.stderr.write(isBar ? `\r${label}: ${render()}` : `${label}: ${render().trim()}\n`)
    },
    end: () => {
      if (isBar && isDrawn) process.stderr.write("\r\x1b[K")
    }
  }
}

/** How often the elapsed time is drawn on a terminal, in milliseconds. */
const elapsedIntervalMs = 1_000

/**
 * Shows the elapsed time of an effect on stderr, with a label such as `Importing`. An effect that ends before the
 * first interval shows nothing.
 */
export const withElapsedTime =
  (label: string) =>
  <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
    Effect.suspend(() => {
      const isTerminal = process.stderr.isTTY === true
      const startedAt = Date.now()
      let isDrawn = false
      const draw = Effect.sync(() => {
        isDrawn = true
        const text = `${label}: ${Math.round((Date.now() - startedAt) / 1000)} s`
        process.stderr.write(isTerminal ? `\r${text}` : `${text}\n`)
      })
      const erase = Effect.sync(() => {
        if (isTerminal && isDrawn) process.stderr.write("\r\x1b[K")
      })
      const drawing = Effect.forever(Effect.delay(draw, isTerminal ? elapsedIntervalMs : lineIntervalMs))
      return Effect.ensuring(Effect.raceFirst(effect, drawing), erase)
    })
