import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { Query } from "../connection/Query.ts"

/**
 * Selects the transaction that commits with notifications, if any: PostgreSQL holds a lock on all databases from when
 * it adds notifications to their queue until the transaction is visible.
 */
const selectCommitting = `select virtualtransaction as id from pg_locks
  where locktype = 'object' and database = 0 and classid = 'pg_database'::regclass and objid = 0 and granted`

/** The time between two looks at a transaction that has not ended, in milliseconds. */
const pollIntervalMs = 5
/** How long a read waits for a transaction to end, in milliseconds. */
const defaultTimeoutMs = 500

/**
 * Proves that what a replica has shown is visible on the primary. A commit may be visible on a replica before it is on the
 * primary: its record is replayed while the primary still waits, for example for the confirmation of a synchronous
 * standby. Changes that a reader can notice are committed with notifications, one after the other, so at most one is
 * in that state: once that transaction has ended, everything that any replica had shown is visible.
 */
export class CommitBarrier {
  readonly #query: Query
  readonly #timeoutMs: number
  #provenAt = Number.NEGATIVE_INFINITY
  #attempt: Deferred.Deferred<void, Unavailable> | undefined

  constructor(query: Query, timeoutMs = defaultTimeoutMs) {
    this.#query = query
    this.#timeoutMs = timeoutMs
  }

  /** What replicas had shown before this time, by the monotonic clock, is visible on the primary. */
  get provenAt(): number {
    return this.#provenAt
  }

  /**
   * Succeeds once what replicas had shown until `at` is visible on the primary. Fails if that takes too long. At most one
   * proof is under way; callers that come too late for it share the next one.
   */
  await(at: number): Effect.Effect<void, Unavailable> {
    const prove: Effect.Effect<void, Unavailable> = Effect.suspend(() =>
      this.#provenAt > at ? Effect.void : Effect.andThen(this.#joinAttempt, prove)
    )
    return Effect.timeoutOrElse(prove, {
      duration: this.#timeoutMs,
      orElse: () => Effect.fail(Unavailable)
    })
  }

  get #joinAttempt(): Effect.Effect<void, Unavailable> {
    return Effect.suspend(() => {
      if (this.#attempt !== undefined) return Deferred.await(this.#attempt)
      const attempt = Deferred.makeUnsafe<void, Unavailable>()
      this.#attempt = attempt
      const end = Effect.timeoutOrElse(this.#prove, {
        duration: this.#timeoutMs,
        orElse: () => Effect.fail(Unavailable)
      }).pipe(
        Effect.onExit((exit) => {
          this.#attempt = undefined
          return Deferred.done(attempt, exit)
        })
      )
      // Detached: the caller may be interrupted while others wait.
      return Effect.andThen(Effect.forkDetach(end), Deferred.await(attempt))
    })
  }

  get #prove(): Effect.Effect<void, Unavailable> {
    return Effect.suspend(() => {
      const startedAt = performance.now()
      const waitForEnd = (first: unknown): Effect.Effect<void, Unavailable> =>
        Effect.flatMap(this.#findCommitting, (id) => {
          if (id !== undefined && (first === undefined || id === first))
            return Effect.delay(waitForEnd(id), pollIntervalMs)
          this.#provenAt = startedAt
          return Effect.void
        })
      return waitForEnd(undefined)
    })
  }

  get #findCommitting(): Effect.Effect<unknown, Unavailable> {
    return Effect.map(this.#query({ text: selectCommitting, params: [] }), ([row]) => row?.id)
  }
}
