import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Metric from "effect/Metric"
import * as PartitionedSemaphore from "effect/PartitionedSemaphore"
import type { AdmittedCaller } from "../../../application/Admission.ts"
import { checkIsUp, revisionOf } from "../../../application/cache/RevisionedCache.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import type { ApiKeyId } from "../../../domain/ApiKey.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import type { ApiError } from "../contract/Errors.ts"
import { forbidStoring, type HttpResponse } from "./HttpMessage.ts"
import type { RequestContext } from "./RequestContext.ts"

/** The maximum numbers of held requests: per key, and per process. */
const maxHeld = { perKey: 200, perProcess: 5_000 } as const

/** The maximum number of concurrent checks. */
const maxChecks = 16

const heldGauge = Metric.gauge("prompt_retrieval_http_requests_held", {
  description: "Requests that wait for a change"
})

interface HeldRequest {
  readonly workspace: WorkspaceId
  /** True once the transport or a loss of the change feed has ended the wait. */
  isReleased: boolean
  /** Wakes the request from its sleep. */
  wake: () => void
}

/** The result of a check: the response that was made again, and the caller who was admitted again. */
interface CheckResult {
  readonly response: HttpResponse
  readonly caller: AdmittedCaller | undefined
}

/**
 * Makes the function that holds a request whose response is a 304, until the response changes. Each change after the
 * arrival of the request causes a check, so no change is missed. A check admits the caller again and makes the response
 * again. Equal requests (the same `Authorization`, target and `If-None-Match`) share a check.
 *
 * @param respondAgain makes the response to a held request again
 */
export const makeHeldRequests = Effect.fnUntraced(function* (
  respondAgain: (context: RequestContext) => Effect.Effect<HttpResponse, ApiError>
) {
  const feed = yield* ChangeFeed
  const clock = yield* Clock.Clock
  /** Limits concurrent checks. The deadline of a check starts when the check has a permit. Workspaces take turns. */
  const permits = yield* PartitionedSemaphore.make<WorkspaceId>({ permits: maxChecks })
  const checks = new Map<string, Fiber.Fiber<CheckResult, ApiError>>()
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  /** The held requests, by workspace for a fast lookup. One statement can change 200,000 workspaces. */
  const held = new Map<WorkspaceId, Set<HeldRequest>>()
  let heldCount = 0
  const heldByKey = new Map<ApiKeyId, number>()
  // Registers the gauge, so that the metrics include the gauge even before the first held request.
  yield* Metric.update(heldGauge, 0)
  const updateGauge = Effect.suspend(() => Metric.update(heldGauge, heldCount))

  const changeCount = (key: ApiKeyId, change: 1 | -1): void => {
    heldCount += change
    heldByKey.set(key, (heldByKey.get(key) ?? 0) + change)
    if (heldByKey.get(key) === 0) heldByKey.delete(key)
  }

  feed.onChange((changed) => {
    const isLost = changed === undefined && !checkIsUp(feed)
    const affected = changed === undefined ? held.values() : [held.get(changed) ?? []]
    for (const requests of affected)
      for (const request of requests) {
        if (isLost) request.isReleased = true
        request.wake()
      }
  })

  /** Makes the response again. If a check of an equal request has started since the last change, joins that check. */
  const check = (context: RequestContext, workspace: WorkspaceId): Effect.Effect<CheckResult, ApiError> =>
    Effect.suspend(() => {
      const { cacheKey, request } = context
      const id = `${workspace} ${checkIsUp(feed)} ${revisionOf(feed, workspace)} ${cacheKey} ${request.headers["if-none-match"]}`
      const other = checks.get(id)
      if (other !== undefined) return Fiber.join(other)
      const checked = Effect.map(respondAgain(context), (response) => ({
        response: forbidStoring(response),
        caller: context.caller
      }))
      const own = fork(permits.withPermit(workspace)(checked))
      checks.set(id, own)
      own.addObserver(() => checks.delete(id))
      return Fiber.join(own)
    })

  /** Waits until the response is no longer a 304, or until the wait ends. */
  const waitForChange = Effect.fnUntraced(function* (
    request: HeldRequest,
    context: RequestContext,
    checkedRevision: number | undefined,
    notModified: HttpResponse
  ) {
    const { workspace } = request
    const { waitSeconds = 0 } = context
    const endsAt = performance.now() + waitSeconds * 1_000
    /** The last 304, and the revision of the workspace before this 304 was made. */
    let [known, revision] = [forbidStoring(notModified), checkedRevision]

    const isOutdated = (): boolean => revisionOf(feed, workspace) !== revision
    const hasEnded = (): boolean => request.isReleased || performance.now() >= endsAt
    // If the process has paused, the feed may have missed a change long before the feed counted as down.
    const isTrusted = (): boolean => checkIsUp(feed) || !feed.checkHasPaused()

    /**
     * Sleeps until a change, the end of the wait or the expiry of the key. With Effect's timers, a held request would take
     * 4.0 kB instead of 1.0 kB, and would wake in 13 us instead of 3.5 us.
     */
    const sleep = Effect.callback<void>((resume) => {
      const expiresAt = context.caller?.keyExpiresAt ?? Number.POSITIVE_INFINITY
      const milliseconds = Math.min(endsAt - performance.now(), expiresAt - clock.currentTimeMillisUnsafe())
      if (request.isReleased || isOutdated() || milliseconds <= 0) return resume(Effect.void)
      request.wake = () => {
        clearTimeout(timer)
        resume(Effect.void)
      }
      // Node's timers can run up to 1 ms early.
      const timer = setTimeout(request.wake, milliseconds + 1)
      return Effect.sync(() => clearTimeout(timer))
    })

    const addPreference = (response: HttpResponse): HttpResponse =>
      request.isReleased || response.status !== 304 || performance.now() < endsAt
        ? response
        : { ...response, headers: [...response.headers, "preference-applied", `wait=${waitSeconds}`] }

    for (;;) {
      yield* sleep
      const isLast = hasEnded()
      if (isLast && !isOutdated() && isTrusted()) return addPreference(known)
      revision = revisionOf(feed, workspace)
      const { response, caller } = yield* check(context, workspace)
      context.caller = caller
      // A key may have moved to another workspace.
      if (isLast || response.status !== 304 || caller?.workspaceId !== workspace)
        return addPreference(response)
      known = response
    }
  })

  const hold = (context: RequestContext, caller: AdmittedCaller, revision: number, response: HttpResponse) =>
    Effect.uninterruptibleMask((restore) => {
      const { keyId, workspaceId: workspace } = caller
      const request: HeldRequest = { workspace, isReleased: false, wake: () => {} }
      const current = revisionOf(feed, workspace)
      const hasRoom = heldCount < maxHeld.perProcess && (heldByKey.get(keyId) ?? 0) < maxHeld.perKey
      const release = (): void => {
        request.isReleased = true
        request.wake()
      }
      const endWait = hasRoom && checkIsUp(feed) ? context.request.startWait?.(release) : undefined
      if (endWait === undefined) return Effect.succeed(response)
      const requests = held.get(workspace) ?? new Set()
      held.set(workspace, requests.add(request))
      changeCount(keyId, 1)
      context.isHeld = true
      const wait = waitForChange(request, context, current > revision ? undefined : current, response)
      return Effect.ensuring(
        Effect.andThen(updateGauge, restore(wait)),
        Effect.suspend(() => {
          requests.delete(request)
          if (requests.size === 0) held.delete(workspace)
          changeCount(keyId, -1)
          endWait()
          return updateGauge
        })
      )
    })

  /** Runs `respond`, and holds the request if the request may wait and the response is a 304. */
  return (context: RequestContext, respond: Effect.Effect<HttpResponse, ApiError>): typeof respond => {
    const revision = checkIsUp(feed) ? feed.latestRevision : undefined
    return Effect.flatMap(respond, (response) =>
      context.caller !== undefined && response.status === 304 && revision !== undefined
        ? hold(context, context.caller, revision, response)
        : Effect.succeed(response)
    )
  }
})
