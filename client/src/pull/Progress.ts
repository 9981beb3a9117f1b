/** How often the progress is drawn, in milliseconds. */
const intervalMs = 100

/** Shows on stderr how many prompts have been read, if stderr is a terminal. */
export class Progress {
  readonly #isTerminal = process.stderr.isTTY === true
  #done = 0
  /** Undefined while the list of prompts is being read. */
  #total: number | undefined
  #drawnAt = 0

  /** Shows that the list of prompts is being read. */
  list(): void {
    this.#draw("")
  }

  /** Sets the number of prompts to read, and shows the number. */
  start(total: number): void {
    this.#total = total
    this.#draw("")
  }

  /** Adds 1 to the number of prompts that have been read. */
  advance(): void {
    this.#done++
    if (Date.now() - this.#drawnAt >= intervalMs) this.#draw("")
  }

  /** Shows that the rate limit delays the next requests. Takes the value of `Retry-After`. */
  wait(retryAfter: string | null): void {
    this.#draw(
      `; the rate limit delays the next requests by ${/^\d{1,4}$/.test(retryAfter ?? "") ? retryAfter : "some"} s`
    )
  }

  /** Removes the progress from the terminal. */
  end(): void {
    if (this.#isTerminal) process.stderr.write("\r\x1b[K")
  }

  #draw(remark: string): void {
    this.#drawnAt = Date.now()
    if (!this.#isTerminal) return
    const activity =
      this.#total === undefined ? "Listing prompts" : `Reading prompts: ${this.#done} of ${this.#total}`
    // A longer line would wrap, and only its last row would be removed.
    const line = (activity + remark).slice(0, (process.stderr.columns || 80) - 1)
    process.stderr.write(`\r\x1b[K${line}`)
  }
}
