import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constVoid, identity } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import type { KeyHash } from "../../domain/ApiKey.ts"
import { elapsedBetween, type Instant } from "../../domain/time/Instant.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { whenSlow, CircuitBreaker } from "./CircuitBreaker.ts"
import { readInstant } from "../support/Clocks.ts"
import { runUntil } from "../support/Deadline.ts"
import { metricRegistry, registerCounter } from "../support/Observability.ts"
import { type CacheEntry, wasCurrentAt } from "./RevisionedCache.ts"
import { ChangeFeed, type LastContact } from "../ports/ChangeFeed.ts"
import { isUnavailable, Unavailable } from "../ports/Unavailable.ts"

/** The default of `maxAgeMs`, in milliseconds (specification 8). */
export const defaultOutageMaxAge = 300_000

/** The interval of the check that logs changes of the outage's phase and sets the gauge, in milliseconds. */
const checkIntervalMs = 250
/** The interval at which a failed read checks whether the change feed has also lost contact, in milliseconds. */
const contactCheckIntervalMs = 20

const countResponse = registerCounter(
  "prompt_retrieval_outage_responses_total",
  "Responses that were served without the database because they were current when contact was lost"
)

const responseAge = Metric.histogram("prompt_retrieval_outage_response_age_seconds", {
  description: "Age of the responses that were served without the database, since the last contact with it",
  boundaries: [1, 2, 5, 10, 20, 30, 60, 120, 180, 240, 300, 600, 1200, 3600]
})
// Registers the histogram, so that the metrics include it even before its first sample.
responseAge.valueUnsafe(metricRegistry)

const secondsLeft = Metric.gauge("prompt_retrieval_outage_seconds_left", {
  description:
    "How long known responses are still served without the database; OUTAGE_MAX_AGE while it is reachable"
})

/**
 * Decides which values from before an outage of the database are served. While the change feed is down, reads still go
 * to the database first, through a circuit breaker. If the database does not respond, the read gets the known value:
 * the cached value that was current at the last contact. A known value is served only until the maximum age since the
 * last contact has passed. A feed that comes up again has new revisions, so values from before the outage are not
 * served after the outage.
 */
export class Outage extends Context.Service<
  Outage,
  {
    /**
     * Runs a read of the database. While the change feed is down and known values may be served, reads run through a
     * circuit breaker, so that waiting reads do not fill the connection pools.
     */
    readonly protect: <A, E>(read: Effect.Effect<A, E>) => Effect.Effect<A, E | Unavailable>
    /**
     * Runs `fresh`. While the change feed is down, runs `known` instead if `fresh` fails as unavailable or has no
     * result after 250 ms. If `fresh` fails as unavailable while the feed is still up, first waits. If the feed then
     * confirms its contact, fails like `fresh`; if the feed goes down, runs `known`. Never runs `known` if no known
     * value may be served.
     */
    readonly orKnown: <A, E>(
      fresh: Effect.Effect<A, E>,
      known: Effect.Effect<A, E>
    ) => Effect.Effect<A, E | Unavailable>
    /**
     * Returns the age of every known value: the milliseconds since the last contact. Returns `undefined` if no known
     * value may be served. Call this right before a value is sent: the process may have been suspended during an
     * earlier wait.
     */
    readonly findAge: () => number | undefined
    /** Returns true if a value was current at the last contact. */
    readonly isLastKnown: (entry: CacheEntry<unknown>) => boolean
    /** Counts a known value that was served, and its age in milliseconds. */
    readonly recordResponse: (ageMs: number) => void
    /**
     * Reports a key or a workspace whose known values must no longer be served: a read has found that the key is
     * rejected, or that the workspace is rejected or may have changed.
     */
    readonly invalidate: (changed: KeyHash | WorkspaceId) => void
    /**
     * Calls `listener` with each reported key or workspace, so that a cache can delete the values of this key or
     * workspace.
     */
    readonly onInvalidate: (listener: (changed: KeyHash | WorkspaceId) => void) => void
  }
>()("prompt-retrieval/Outage") {}

const off: Outage["Service"] = {
  protect: identity,
  orKnown: identity,
  findAge: () => undefined,
  isLastKnown: () => false,
  recordResponse: constVoid,
  invalidate: constVoid,
  onInvalidate: constVoid
}

/** Never serves values from before an outage. */
export const offLayer: Layer.Layer<Outage> = Layer.succeed(Outage, off)

export interface OutageOptions {
  readonly feed: ChangeFeed["Service"]
  /** The maximum age of a known value: the milliseconds since the last contact. */
  readonly maxAgeMs: number
  readonly now?: () => Instant
}

/**
 * Makes the service and the effect `check`, which sets the gauge. `check` also logs when the first known value is
 * served in an outage, when known values become too old, and when such an outage has ended.
 */
export const makeOutage = ({ feed, maxAgeMs, now = readInstant }: OutageOptions) => {
  const listeners: Array<(changed: KeyHash | WorkspaceId) => void> = []
  /** The breaker of the outage whose last contact was at `contactAt`. */
  let breaker = new CircuitBreaker()
  let contactAt: number | undefined
  let phase = "contact" as "contact" | "serving" | "expired"

  const getAge = ({ at }: LastContact) => elapsedBetween(at, now())
  const isUp = () => feed.revision() !== undefined

  /** Returns the last contact if the feed is down and values from before the outage may still be served. */
  const findContact = (): LastContact | undefined => {
    if (isUp()) return undefined
    const contact = feed.lastContact()
    return contact !== undefined && getAge(contact) <= maxAgeMs ? contact : undefined
  }

  const isContactLost: Effect.Effect<boolean> = Effect.suspend(() => {
    const failedAt = now().monotonic
    const checkContact: Effect.Effect<boolean> = Effect.suspend(() => {
      if (!isUp()) return Effect.succeed(findContact() !== undefined)
      const contact = feed.lastContact()
      return contact === undefined || contact.at.monotonic >= failedAt
        ? Effect.succeed(false)
        : Effect.delay(checkContact, contactCheckIntervalMs)
    })
    return checkContact
  })

  /**
   * Fails as unavailable if the read has no result after 250 ms and known values may be served. Does not wait until the
   * statement of the read ends.
   */
  const failWhenSlow = <A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E | Unavailable> =>
    runUntil(read, (end) =>
      whenSlow(() => {
        if (findContact() !== undefined) end(Effect.fail(Unavailable))
      })
    )

  const outage = Outage.of({
    protect: <A, E>(read: Effect.Effect<A, E>) =>
      Effect.suspend((): Effect.Effect<A, E | Unavailable> => {
        const contact = findContact()
        if (contact === undefined) return read
        if (contactAt !== contact.at.monotonic) {
          contactAt = contact.at.monotonic
          breaker = new CircuitBreaker()
        }
        return breaker.run(read)
      }),
    orKnown: <A, E>(fresh: Effect.Effect<A, E>, known: Effect.Effect<A, E>) =>
      Effect.catchIf(failWhenSlow(fresh), isUnavailable, (error) =>
        Effect.flatMap(
          isContactLost,
          (isLost): Effect.Effect<A, E | Unavailable> => (isLost ? known : Effect.fail(error))
        )
      ),
    findAge: () => {
      const contact = findContact()
      return contact === undefined ? undefined : getAge(contact)
    },
    isLastKnown: (entry) => {
      const contact = feed.lastContact()
      return contact !== undefined && wasCurrentAt(contact, entry)
    },
    recordResponse: (ageMs) => {
      phase = "serving"
      countResponse()
      responseAge.updateUnsafe(ageMs / 1_000, metricRegistry)
    },
    invalidate: (changed) => {
      for (const listener of listeners) listener(changed)
    },
    onInvalidate: (listener) => void listeners.push(listener)
  })

  let logged = phase
  const check: Effect.Effect<void> = Effect.suspend(() => {
    const contact = feed.lastContact()
    const msLeft = contact === undefined ? 0 : Math.max(0, maxAgeMs - (isUp() ? 0 : getAge(contact)))
    secondsLeft.updateUnsafe(msLeft / 1_000, metricRegistry)
    if (isUp()) phase = "contact"
    else if (phase === "serving" && msLeft === 0) phase = "expired"
    if (phase === logged) return Effect.void
    logged = phase
    switch (phase) {
      case "contact":
        return Effect.logInfo("Database restored; responses are current again")
      case "serving":
        return Effect.logWarning(
          `Database unreachable; responses that were current at the last contact are served for ${Math.round(msLeft / 1_000)} s`
        )
      case "expired":
        return Effect.logWarning("Database unreachable for too long; known responses are not served any more")
    }
  })
  return { outage, check }
}

/** Sleeps without keeping the process alive, so that a host of `createPromptApi` can end. */
const sleepInBackground = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds).unref()
    return Effect.sync(() => clearTimeout(timer))
  })

/** Serves known values for at most `maxAgeMs` milliseconds after the last contact; 0 means never. */
export const layer = (maxAgeMs: number): Layer.Layer<Outage, never, ChangeFeed> =>
  maxAgeMs === 0
    ? offLayer
    : Layer.effect(
        Outage,
        Effect.gen(function* () {
          const feed = yield* ChangeFeed
          const { outage, check } = makeOutage({ feed, maxAgeMs })
          yield* check
          yield* Effect.forkScoped(Effect.forever(Effect.andThen(sleepInBackground(checkIntervalMs), check)))
          return outage
        })
      )
