import * as Effect from "effect/Effect"

/** A sleep that another fiber can end. A wake-up without a sleeper ends the next sleep at once. */
export class WakeableSleep {
  #isDue = false
  #resume: (() => void) | undefined

  wake(): void {
    if (this.#resume === undefined) this.#isDue = true
    else this.#resume()
  }

  /** Sleeps until the next wake-up, for at most this long, in milliseconds. */
  sleep(milliseconds: number): Effect.Effect<void> {
    return Effect.callback((resume) => {
      if (this.#isDue) {
        this.#isDue = false
        return resume(Effect.void)
      }
      const end = () => {
        clearTimeout(timer)
        this.#resume = undefined
      }
      const timer = setTimeout(() => this.#resume?.(), milliseconds)
      this.#resume = () => {
        end()
        resume(Effect.void)
      }
      return Effect.sync(end)
    })
  }
}
