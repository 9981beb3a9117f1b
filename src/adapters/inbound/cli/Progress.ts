/** How often a line without a terminal is written, in milliseconds, and how often a bar is drawn. */
const lineInterval = 5_000
const barInterval = 100

const barLength = 30

const mebibytes = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1)

/** Tells on stderr how far a long reading is: a bar on a terminal, else a line now and then. */
export const makeProgress = (total: number) => {
  const bar = process.stderr.isTTY === true
  let bytes = 0
  let drawn = false
  let latest = Date.now()
  const text = (): string => {
    const part = total === 0 ? 1 : Math.min(bytes / total, 1)
    const done = Math.round(part * barLength)
    const percent = `${Math.floor(part * 100)}%`.padStart(4)
    const drawing = bar ? `[${"#".repeat(done)}${" ".repeat(barLength - done)}] ` : ""
    return `${drawing}${percent} of ${mebibytes(total)} MiB`
  }
  return {
    add: (count: number): void => {
      bytes += count
      if (Date.now() - latest < (bar ? barInterval : lineInterval)) return
      latest = Date.now()
      drawn = true
      process.stderr.write(bar ? `\r${text()}` : `Importing: ${text().trim()}\n`)
    },
    /** Leaves the terminal's line as it was. */
    end: (): void => {
      if (bar && drawn) process.stderr.write("\r\x1b[K")
    }
  }
}
