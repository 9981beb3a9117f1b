import * as Effect from "effect/Effect"
import { makeStateLog } from "../../../../application/StateLog.ts"
import type { Query } from "../connection/Query.ts"

/** How often the primary is asked whether it responds again, in milliseconds. */
const probeIntervalMs = 500

/** Knows whether the primary is down: a read of it failed while the change feed was down. */
export class PrimaryAvailability {
  readonly #query: Query
  readonly #isFeedUp: () => boolean
  readonly #onChange: (isDown: boolean) => void
  readonly #stateLog = makeStateLog({
    failed: "Primary unreachable; replicas serve what they have replayed",
    restored: "Primary restored"
  })
  #isDown = false

  constructor(query: Query, isFeedUp: () => boolean, onChange: (isDown: boolean) => void) {
    this.#query = query
    this.#isFeedUp = isFeedUp
    this.#onChange = onChange
  }

  get isDown(): boolean {
    return this.#isDown
  }

  /** Reports that the primary did not respond while the change feed was down. */
  reportDown(): void {
    this.#set(true)
  }

  /** Logs the state, and finds out when the primary responds again, until it is interrupted. */
  get run(): Effect.Effect<never> {
    return Effect.suspend(() => {
      if (!this.#isDown) return this.#stateLog.up
      if (this.#isFeedUp()) return Effect.sync(() => this.#set(false))
      const probe = this.#query({ text: "select 1", params: [] })
      return Effect.andThen(
        this.#stateLog.down(),
        Effect.match(probe, { onFailure: () => {}, onSuccess: () => this.#set(false) })
      )
    }).pipe(Effect.andThen(Effect.sleep(probeIntervalMs)), Effect.forever)
  }

  #set(isDown: boolean): void {
    if (this.#isDown === isDown) return
    this.#isDown = isDown
    this.#onChange(isDown)
  }
}
