import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { constVoid, identity } from "effect/Function"
import * as Layer from "effect/Layer"
import type { KeyHash } from "../../domain/ApiKey.ts"
import { elapsedBetween, type Instant } from "../../domain/time/Instant.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { afterSilence, CircuitBreaker } from "./CircuitBreaker.ts"
import { readInstant } from "../support/Clocks.ts"
import { type CacheEntry, wasCurrentAt } from "./Freshness.ts"
import { ChangeFeed, type LastContact } from "../ports/ChangeFeed.ts"
import { Observations } from "../ports/Observations.ts"
import { isUnavailable, Unavailable } from "../ports/Unavailable.ts"

/** How long values are served after the last contact by default, in milliseconds (specification 8). */
export const defaultOutageMaxAge = 300_000

/** How often the state of the outage is checked for the log and the gauge, in milliseconds. */
const checkIntervalMs = 250
/** How often a failed read checks whether the change feed has also lost contact, in milliseconds. */
const contactCheckIntervalMs = 20

/**
 * Decides which values from before an outage of the database are served. While the change feed is down, each read asks
 * the database first. If the database does not respond, the read gets the value that was current at the last contact,
 * unless the maximum age since the last contact has passed. A feed that comes up again has new revisions, so no value
 * from before the outage matches.
 */
export class Outage extends Context.Service<
  Outage,
  {
    /** Runs a read of the database. While the change feed is down, a circuit breaker keeps the pools free. */
    readonly protect: <A, E>(read: Effect.Effect<A, E>) => Effect.Effect<A, E | Unavailable>
    /**
     * Runs `fresh`, and `known` if contact is lost and `fresh` fails as unavailable or has no result after 250 ms. If
     * `fresh` fails while the change feed is up, waits until the feed proves its contact or goes down.
     */
    readonly orKnown: <A, E>(
      fresh: Effect.Effect<A, E>,
      known: Effect.Effect<A, E>
    ) => Effect.Effect<A, E | Unavailable>
    /**
     * Returns the age of all known values in milliseconds, counted from the last contact, or `undefined` if no known
     * value may be served. Call this right before a value is sent, because any wait may have been a suspension.
     */
    readonly findAge: () => number | undefined
    /** Returns true if a value was current at the last contact. */
    readonly isLastKnown: (entry: CacheEntry<unknown>) => boolean
    /** Counts a served value and its age in milliseconds. */
    readonly recordResponse: (ageMs: number) => void
    /** Reports what a read showed: a key is rejected, or a workspace has changed or is rejected. */
    readonly invalidate: (changed: KeyHash | WorkspaceId) => void
    /** Calls `listener` with each report, so that it can delete what was cached before. */
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
  readonly observations: Observations["Service"]
  /** How long after the last contact values are served, in milliseconds. */
  readonly maxAgeMs: number
  readonly now?: () => Instant
}

/** Makes the service, and the check that logs when an outage begins and ends and sets the gauge. */
export const makeOutage = ({ feed, observations, maxAgeMs, now = readInstant }: OutageOptions) => {
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

  const failOnSilence = Effect.callback<never, Unavailable>((resume) => {
    const stop = afterSilence(() => {
      if (findContact() !== undefined) resume(Effect.fail(Unavailable))
    })
    return Effect.sync(stop)
  })

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
      Effect.catchIf(Effect.raceFirst(fresh, failOnSilence), isUnavailable, (error) =>
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
      observations.recordOutageResponse(ageMs / 1_000)
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
    observations.setOutageSecondsLeft(msLeft / 1_000)
    if (isUp()) phase = "contact"
    else if (phase === "serving" && msLeft === 0) phase = "expired"
    if (phase === logged) return Effect.void
    const before = logged
    logged = phase
    switch (phase) {
      case "contact":
        return before === "serving"
          ? Effect.logInfo("Database restored; responses are current again")
          : Effect.void
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

/** Sleeps without keeping the process alive: the host of `createPromptApi` may have nothing else to do. */
const sleepInBackground = (milliseconds: number): Effect.Effect<void> =>
  Effect.callback((resume) => {
    const timer = setTimeout(() => resume(Effect.void), milliseconds).unref()
    return Effect.sync(() => clearTimeout(timer))
  })

/** Serves values for at most `maxAgeMs` after the last contact; 0 turns this off. */
export const layer = (maxAgeMs: number): Layer.Layer<Outage, never, ChangeFeed | Observations> =>
  maxAgeMs === 0
    ? offLayer
    : Layer.effect(
        Outage,
        Effect.gen(function* () {
          const feed = yield* ChangeFeed
          const { outage, check } = makeOutage({ feed, observations: yield* Observations, maxAgeMs })
          yield* check
          yield* Effect.forkScoped(Effect.forever(Effect.andThen(sleepInBackground(checkIntervalMs), check)))
          return outage
        })
      )
