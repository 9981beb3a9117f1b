import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Metric from "effect/Metric"
import * as PartitionedSemaphore from "effect/PartitionedSemaphore"
import type { AdmittedCaller } from "../../../application/access/Admission.ts"
import { metricRegistry } from "../../../application/observability/Instrumentation.ts"
import { ChangeFeed } from "../../../application/ports/ChangeFeed.ts"
import type { ApiKeyId } from "../../../domain/ApiKey.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import type { ApiError } from "../contract/Errors.ts"
import type { HttpResponse } from "./HttpMessage.ts"
import type { RequestContext } from "./RequestRecord.ts"

/** The maximum number of held requests, per key and per process. */
const maxHeld = { perKey: 200, perProcess: 5_000 } as const

/** The number of checks that run at the same time. */
const maxChecks = 16

const heldGauge = Metric.gauge("prompt_retrieval_http_requests_held", {
  description: "Requests that wait for a change"
})

interface HeldRequest {
  readonly group: Group
  readonly key: ApiKeyId
  readonly seconds: number
  /** The value of `performance.now()` at which the wait ends. */
  readonly endsAt: number
  readonly resume: (response: Exit.Exit<HttpResponse, ApiError>) => void
  /** Tells the transport that the wait has ended. */
  readonly endWait: () => void
  timer: NodeJS.Timeout | undefined
  /** Why the request is still held: it waits for a change, or its wait has ended and a check must finish first. */
  state: "waiting" | "timed out" | "released"
}

/** Equal held requests: the same `Authorization`, target and `If-None-Match`. */
interface Group {
  readonly id: string
  readonly workspace: WorkspaceId
  /** The context of the first request, with which the response is made again. */
  readonly context: RequestContext
  readonly requests: Set<HeldRequest>
  /** The 304 that the requests get if nothing changes. */
  notModified: HttpResponse
  /** The revision of the workspace when the last check started; `undefined` if another check must follow. */
  revision: number | undefined
  isChecking: boolean
}

/** Returns the response for several held requests. No cache may store it. */
const toHeldResponse = (response: HttpResponse): HttpResponse => {
  const headers = [...response.headers]
  headers[headers.indexOf("cache-control") + 1] = "no-store"
  return { ...response, headers, isFreedWhenSent: false }
}

/**
 * Makes the function that holds a request whose response is a 304, until the response changes. No change is lost: the
 * revision from before the 304 was made is compared, and each later revision causes a check. A check admits the caller
 * again and makes the response again, once for equal requests.
 *
 * @param respondAgain makes the response to a held request again
 */
export const makeHeldRequests = Effect.fnUntraced(function* (
  respondAgain: (context: RequestContext) => Effect.Effect<HttpResponse, ApiError>
) {
  const feed = yield* ChangeFeed
  const clock = yield* Clock.Clock
  const fork = Effect.runForkWith(yield* Effect.context<never>())
  /** Limits concurrent checks. The deadline of a check starts when the check has a permit. Workspaces take turns. */
  const checks = PartitionedSemaphore.makeUnsafe<WorkspaceId>({ permits: maxChecks })
  const groups = new Map<string, Group>()
  const heldByKey = new Map<ApiKeyId, number>()
  let held = 0
  // Registers the gauge, so that the metrics include it even before the first held request.
  heldGauge.updateUnsafe(held, metricRegistry)

  const changeCount = (key: ApiKeyId, change: 1 | -1): void => {
    heldByKey.set(key, (heldByKey.get(key) ?? 0) + change)
    if (heldByKey.get(key) === 0) heldByKey.delete(key)
    held += change
    heldGauge.updateUnsafe(held, metricRegistry)
  }

  const isOutdated = ({ workspace, revision }: Group): boolean =>
    feed.lastContact()?.revisionOf(workspace) !== revision

  const end = (request: HeldRequest, response: Exit.Exit<HttpResponse, ApiError>): void => {
    const { group, key, seconds, resume, endWait, timer, state } = request
    if (!group.requests.delete(request)) return
    if (group.requests.size === 0) groups.delete(group.id)
    clearTimeout(timer)
    endWait()
    changeCount(key, -1)
    const hasWaited = state === "timed out" && Exit.isSuccess(response) && response.value.status === 304
    const applied = hasWaited ? ["preference-applied", `wait=${seconds}`] : []
    resume(Exit.map(response, (content) => ({ ...content, headers: [...content.headers, ...applied] })))
  }

  /** Ends a wait: with the 304 if it is known to be current, otherwise after a check. */
  const release = (request: HeldRequest, state: "timed out" | "released" = "released"): void => {
    const { group } = request
    request.state = state
    if (group.isChecking) return
    if (isOutdated(group) || feed.revision() === undefined) check(group)
    else end(request, Exit.succeed(group.notModified))
  }

  /** Starts the timer of a request, for the end of its wait or for the expiry of its key if that is earlier. */
  const startTimer = (request: HeldRequest): void => {
    const { group, endsAt } = request
    const left = Math.max(0, endsAt - performance.now())
    const expiresAt = group.context.caller?.keyExpiresAt
    const untilExpiry = expiresAt == null ? left : Date.parse(expiresAt) - clock.currentTimeMillisUnsafe()
    const onTime = () => (untilExpiry < left ? check(group) : release(request, "timed out"))
    clearTimeout(request.timer)
    // Node's timers may run up to one millisecond early.
    request.timer = setTimeout(onTime, Math.min(left, untilExpiry) + 1)
  }

  /** Checks a group now, or again after the check in flight. */
  const check = (group: Group): void => {
    group.revision = undefined
    if (group.isChecking) return
    group.isChecking = true
    group.revision = feed.lastContact()?.revisionOf(group.workspace)
    // The response may be older than a request that is added, or than a change before a release, during the check.
    const requests = [...group.requests].map((request) => ({
      request,
      isWaiting: request.state === "waiting"
    }))
    fork(checks.withPermit(group.workspace)(respondAgain(group.context))).addObserver((exit) => {
      group.isChecking = false
      const response = Exit.map(exit, toHeldResponse)
      // A key may have moved to another workspace.
      const isUnchanged =
        Exit.isSuccess(response) &&
        response.value.status === 304 &&
        group.context.caller?.workspaceId === group.workspace
      if (isUnchanged) group.notModified = response.value
      for (const { request, isWaiting } of requests) {
        if (!isUnchanged || !isWaiting) end(request, response)
        else if (request.state === "waiting" && group.requests.has(request)) startTimer(request)
      }
      for (const request of group.requests) if (request.state !== "waiting") release(request, request.state)
      if (isOutdated(group) && group.requests.size > 0) check(group)
    })
  }

  feed.onChange((changed) => {
    const isLost = changed === undefined && feed.revision() === undefined
    // After a pause, the feed may have missed a change long before its loss is noticed.
    const isRecent = feed.lastContact()?.hasPausedSince() === false
    for (const group of groups.values()) {
      if (changed !== undefined && changed !== group.workspace) continue
      const isCurrent = isRecent && !group.isChecking && !isOutdated(group)
      if (isLost)
        for (const request of group.requests)
          if (isCurrent) end(request, Exit.succeed(group.notModified))
          else release(request)
      else if (isOutdated(group)) check(group)
    }
  })

  const hold = (context: RequestContext, caller: AdmittedCaller, revision: number, response: HttpResponse) =>
    Effect.callback<HttpResponse, ApiError>((resume) => {
      const { request, cacheKey, waitSeconds: seconds = 0 } = context
      const { keyId: key, workspaceId: workspace } = caller
      const current = feed.revisionOf(workspace)
      const hasRoom = held < maxHeld.perProcess && (heldByKey.get(key) ?? 0) < maxHeld.perKey
      const endWait =
        hasRoom && current !== undefined ? request.startWait?.(() => release(heldRequest)) : undefined
      if (current === undefined || endWait === undefined) return resume(Effect.succeed(response))
      const id = `${workspace} ${cacheKey} ${request.headers["if-none-match"]}`
      const group: Group = groups.get(id) ?? {
        id,
        workspace,
        context,
        requests: new Set(),
        notModified: toHeldResponse(response),
        revision: current,
        isChecking: false
      }
      groups.set(id, group)
      const heldRequest: HeldRequest = {
        group,
        key,
        seconds,
        endsAt: performance.now() + seconds * 1_000,
        resume,
        endWait,
        timer: undefined,
        state: "waiting"
      }
      group.requests.add(heldRequest)
      changeCount(key, 1)
      context.isHeld = true
      startTimer(heldRequest)
      if (current > revision) check(group)
    })

  /** Runs `respond`, and holds the request if it may wait and the response is a 304. */
  return (context: RequestContext, respond: Effect.Effect<HttpResponse, ApiError>): typeof respond => {
    const revision = feed.revision()
    return Effect.flatMap(respond, (response) =>
      context.caller !== undefined && response.status === 304 && revision !== undefined
        ? hold(context, context.caller, revision, response)
        : Effect.succeed({ ...response, isFreedWhenSent: false })
    )
  }
})
