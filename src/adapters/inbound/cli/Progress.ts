/** How often a line is written if stderr is not a terminal, in milliseconds. */
const lineIntervalMs = 5_000

/** How often the bar is drawn, in milliseconds. */
const barIntervalMs = 100

const barLength = 30

const toMebibytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)

/**
 * Makes a progress indicator on stderr for reading `totalBytes`: a bar if stderr is a terminal, otherwise a line every
 * few seconds. A shorter read shows nothing.
 */
export const makeProgress = (totalBytes: number) => {
  const isBar = process.stderr.isTTY === true
  let bytes = 0
  let isDrawn = false
  let lastDrawnAt = Date.now()
  const render = (): string => {
    const fraction = totalBytes === 0 ? 1 : Math.min(bytes / totalBytes, 1)
    const filled = Math.round(fraction * barLength)
    const percent = `${Math.floor(fraction * 100)}%`.padStart(4)
    const bar = isBar ? `[${"#".repeat(filled)}${" ".repeat(barLength - filled)}] ` : ""
    return `${bar}${percent} of ${toMebibytes(totalBytes)} MiB`
  }
  return {
    /** Adds bytes that were read. */
    add: (count: number): void => {
      bytes += count
      if (Date.now() - lastDrawnAt < (isBar ? barIntervalMs : lineIntervalMs)) return
      lastDrawnAt = Date.now()
      isDrawn = true
      process.stderr.write(isBar ? `\r${render()}` : `Importing: ${render().trim()}\n`)
    },
    /** Removes the bar from the terminal. */
    end: (): void => {
      if (isBar && isDrawn) process.stderr.write("\r\x1b[K")
    }
  }
}
