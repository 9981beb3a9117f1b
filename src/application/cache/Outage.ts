import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as Schedule from "effect/Schedule"
import type { KeyHash } from "../../domain/ApiKey.ts"
import { metricRegistry, registerCounter } from "../observability/Instrumentation.ts"
import { ChangeFeed } from "../ports/ChangeFeed.ts"
import { isUnavailable, Unavailable } from "../ports/Unavailable.ts"
import { elapsedBetween, readClocks } from "./FeedState.ts"
import { checkIsUp } from "./RevisionedCache.ts"

/** The default of `maxAgeMs`, in milliseconds (specification 8). */
export const defaultOutageMaxAge = 300_000

/** For this many milliseconds after a failed read, requests with a known response do not query the database. */
const askAgainAfterMs = 1_000
/** A read is slow after `slowSteps` steps of `stepMs` ms. A suspension of the process lengthens only one step. */
const slowSteps = 5
const stepMs = 50

const responseCounter = registerCounter(
  "prompt_retrieval_outage_responses_total",
  "Responses that were served without the database because they were current when contact was lost"
)
const responseAge = Metric.histogram("prompt_retrieval_outage_response_age_seconds", {
  description: "Age of the responses that were served without the database, since the last contact with it",
  boundaries: [1, 2, 5, 10, 20, 30, 60, 120, 180, 240, 300, 600, 1200, 3600]
})
const secondsLeft = Metric.gauge("prompt_retrieval_outage_seconds_left", {
  description:
    "How long known responses are still served without the database; OUTAGE_MAX_AGE while it is reachable"
})
// Registers the histogram, so that the metrics include the histogram even before its first sample.
responseAge.valueUnsafe(metricRegistry)

/** The keys that may use the API according to the state of the database at the last contact. */
export class AcceptedKeys extends Context.Service<
  AcceptedKeys,
  { readonly has: (hash: KeyHash, now: number) => boolean }
>()("prompt-retrieval/application/cache/AcceptedKeys") {}

const off: typeof Outage.Service = {
  readOrServeKnown: (fresh) => fresh,
  findAge: () => undefined,
  recordResponse: () => Effect.void
}

/**
 * Serves known responses while the change feed is down (stale-if-error). A known response is a cached response that was
 * current at the last contact. A request queries the database first. If the query fails with `Unavailable` or is slow,
 * the caller gets the known response. Known responses are served for at most the maximum age after the last contact.
 * When the feed comes up again, its revisions are new, so no response from before an outage is served after the outage.
 */
export class Outage extends Context.Service<
  Outage,
  {
    /**
     * Runs `fresh`. If `fresh` fails with `Unavailable` or is slow while known responses may be served, runs `known`
     * instead. For the next `askAgainAfterMs`, calls run only `known`. A slow `fresh` is not interrupted.
     */
    readonly readOrServeKnown: <A, E>(
      fresh: Effect.Effect<A, E>,
      known: Effect.Effect<A, E>
    ) => Effect.Effect<A, E | Unavailable>
    /**
     * Returns the age of every known response: the milliseconds since the last contact. Returns `undefined` if no known
     * response may be served. Call `findAge` right before sending a response, because a suspension increases the age.
     */
    readonly findAge: () => number | undefined
    /** Records in the metrics that a known response of this age (in milliseconds) is served. */
    readonly recordResponse: (ageMs: number) => Effect.Effect<void>
  }
>()("prompt-retrieval/application/cache/Outage") {
  /** Serves known responses for at most `maxAgeMs` milliseconds after the last contact; 0 means never. */
  static readonly layer = (maxAgeMs: number): Layer.Layer<Outage, never, ChangeFeed> =>
    maxAgeMs === 0
      ? Layer.succeed(Outage, off)
      : Layer.effect(
          Outage,
          Effect.gen(function* () {
            const { outage, report } = makeOutage(yield* ChangeFeed, maxAgeMs)
            yield* Effect.forkScoped(Effect.repeat(report, Schedule.spaced("1 second")))
            return outage
          })
        )

  /** For stores without a cache: serves no known responses. */
  static readonly layerOff: Layer.Layer<Outage | AcceptedKeys> = Layer.merge(
    Layer.succeed(Outage, off),
    Layer.succeed(AcceptedKeys, { has: () => false })
  )
}

/** Makes the service and the effect `report`, which sets the gauge and logs the end of an outage. */
export const makeOutage = (feed: ChangeFeed["Service"], maxAgeMs: number) => {
  let failedAt = Number.NEGATIVE_INFINITY
  let isServing = false

  const findAge = (): number | undefined => {
    if (checkIsUp(feed) || feed.lastContact === undefined) return undefined
    const age = elapsedBetween(feed.lastContact, readClocks())
    return age <= maxAgeMs ? age : undefined
  }
  const mayServe = () => findAge() !== undefined

  /** Waits until a read that starts now counts as slow, and then until known responses may be served. */
  const untilSlow = Effect.gen(function* () {
    for (let step = 0; step < slowSteps || !mayServe(); step++) yield* Effect.sleep(stepMs)
  })

  const outage = Outage.of({
    readOrServeKnown: Effect.fnUntraced(function* <A, E>(
      fresh: Effect.Effect<A, E>,
      known: Effect.Effect<A, E>
    ) {
      if (mayServe() && readClocks().monotonic - failedAt < askAgainAfterMs) return yield* known
      const reading = yield* Effect.forkDetach(fresh, { startImmediately: true })
      const exit = yield* Effect.raceFirst(Fiber.await(reading), Effect.as(untilSlow, undefined))
      if (exit !== undefined && !Option.exists(Exit.findErrorOption(exit), isUnavailable)) return yield* exit
      // Waits until the feed is down, or until a later contact of the feed proves that the database is available.
      const now = readClocks().monotonic
      while (checkIsUp(feed) && (feed.lastContact?.monotonic ?? now) < now) yield* Effect.sleep(20)
      if (!mayServe()) return yield* exit ?? Effect.fail(Unavailable)
      failedAt = readClocks().monotonic
      return yield* known
    }),
    findAge,
    recordResponse: (ageMs) => {
      responseCounter.updateUnsafe(1, metricRegistry)
      responseAge.updateUnsafe(ageMs / 1_000, metricRegistry)
      if (isServing) return Effect.void
      isServing = true
      const seconds = Math.round((maxAgeMs - ageMs) / 1_000)
      return Effect.logWarning(
        `Database unreachable; responses that were current at the last contact are served for ${seconds} s`
      )
    }
  })
  const report = Effect.gen(function* () {
    const age = checkIsUp(feed) ? 0 : (findAge() ?? maxAgeMs)
    yield* Metric.update(secondsLeft, (maxAgeMs - age) / 1_000)
    if (!isServing || !checkIsUp(feed)) return
    isServing = false
    yield* Effect.logInfo("Database restored; responses are current again")
  })
  return { outage, report }
}
