import * as Cause from "effect/Cause"
import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Admission, type AdmittedCaller } from "../../application/Admission.ts"
import { ChangeFeed } from "../../application/ChangeFeed.ts"
import { Unavailable } from "../../application/Unavailable.ts"
import { Endpoints } from "./Api.ts"
import { conditional, representJson } from "./Caching.ts"
import { within } from "./Deadline.ts"
import { type ApiError, InternalError, MethodNotAllowed, RouteNotFound, refusal } from "./Errors.ts"
import { makeEndpoints } from "./Handlers.ts"
import { type Answer, identified, isRead, type RequestMessage } from "./Message.ts"
import { type ReadyResponse, ReadyResponses, type Vacancy } from "./ReadyResponses.ts"
import { requestIdOf } from "./RequestId.ts"
import { report } from "./RequestLog.ts"
import { makeSystem, systemPaths } from "./System.ts"
import { targetReader } from "./Target.ts"
import { inSpan, isTraced } from "./Tracing.ts"

/** The longest that a request may take, in milliseconds; past it the answer is 503 (DESIGN.md section 8). */
const deadline = 5_000

/** Reads a raw request target against every route there is. */
export const readTarget = targetReader([
  ...Object.values(Endpoints.endpoints).map(({ path }) => path),
  ...systemPaths
])

/** Whether the memory for responses that clients have not taken has room for one more body. */
export type HasRoom = (bodyBytes: number) => boolean

const alwaysRoom: HasRoom = () => true

const fits = ({ method }: RequestMessage, { body }: Answer, hasRoom: HasRoom): boolean =>
  method === "HEAD" || hasRoom(body.length)

const refuseForLackOfRoom = Effect.andThen(
  Effect.logWarning("Clients take their responses too slowly; large response replaced by 503"),
  Effect.fail(Unavailable)
)

/** The whole service: from a request to its answer, without fail. A response without room becomes 503. */
export type App = (request: RequestMessage, hasRoom?: HasRoom) => Effect.Effect<Answer>

/** What becomes known of a request on its way, for its log line. */
interface Exchange {
  readonly requestId: string
  route: string | undefined
  caller: AdmittedCaller | undefined
}

/** An expected error, by the one table of errors. */
const refuse = (error: ApiError): Effect.Effect<Answer> => {
  const answer = Effect.succeed(refusal(error))
  return error._tag === "ResolvedTooLarge"
    ? Effect.andThen(Effect.logError("Resolved content is too large", { prompt_id: error.id }), answer)
    : answer
}

/** Anything else: the answer tells nothing of it, the log does. What is interrupted is so because the service closes. */
const refuseDefect = (cause: Cause.Cause<never>, { requestId }: Exchange): Effect.Effect<Answer> =>
  Cause.hasInterruptsOnly(cause)
    ? Effect.succeed(refusal(Unavailable))
    : Effect.logError("Request failed", cause).pipe(
        Effect.annotateLogs({ request_id: requestId }),
        Effect.as(refusal(InternalError))
      )

const inTime = within(deadline, Unavailable)

/**
 * Makes the service over HTTP for whatever carries requests: what is ready, else route and method, admission, the
 * endpoint, within the deadline; then the headers of every answer and the log line. Admission comes before the query
 * is looked at (DESIGN.md section 4), and costs little where it refuses.
 */
export const makeApp = Effect.gen(function* () {
  const admission = yield* Admission
  const ready = new ReadyResponses(yield* ChangeFeed)
  const endpoints = yield* makeEndpoints
  const system = yield* makeSystem
  const traced = yield* isTraced

  /** All that is left to check is the limits: the long way has checked the rest. */
  const answerReady = (
    request: RequestMessage,
    { caller, representation }: ReadyResponse,
    hasRoom: HasRoom
  ) =>
    Effect.flatMap(Clock.currentTimeMillis, (now) => {
      const counted = admission.count(caller.keyId, now)
      const answer = conditional(request, representation)
      return fits(request, answer, hasRoom)
        ? Effect.as(counted, answer)
        : Effect.andThen(counted, refuseForLackOfRoom)
    })

  const answerLong = (
    request: RequestMessage,
    vacancy: Vacancy,
    exchange: Exchange,
    hasRoom: HasRoom
  ): Effect.Effect<Answer, ApiError> => {
    const target = readTarget(request.target)
    if (target === undefined) return Effect.fail(RouteNotFound)
    const { route } = target
    exchange.route = route
    if (!isRead(request)) return Effect.fail(MethodNotAllowed)
    const endpoint = endpoints.get(route)
    if (endpoint === undefined) return system[route as keyof typeof system](request)
    return Effect.flatMap(admission.admit(request.headers.authorization), (caller) => {
      exchange.caller = caller
      return Effect.flatMap(Effect.flatMap(endpoint(caller, target), representJson), (representation) => {
        vacancy.keep({ caller, route, representation })
        const answer = conditional(request, representation)
        return fits(request, answer, hasRoom) ? Effect.succeed(answer) : refuseForLackOfRoom
      })
    })
  }

  const answer = (
    request: RequestMessage,
    exchange: Exchange,
    hasRoom: HasRoom
  ): Effect.Effect<Answer, ApiError> => {
    const found = ready.find(request)
    if ("keep" in found) return inTime(answerLong(request, found, exchange, hasRoom))
    exchange.route = found.route
    exchange.caller = found.caller
    return answerReady(request, found, hasRoom)
  }

  const app: App = (request, hasRoom = alwaysRoom) =>
    Effect.suspend(() => {
      const started = performance.now()
      const requestId = requestIdOf(request.headers["x-request-id"])
      const exchange: Exchange = { requestId, route: undefined, caller: undefined }
      const answered = answer(request, exchange, hasRoom).pipe(
        Effect.catch(refuse),
        Effect.catchCause((cause) => refuseDefect(cause, exchange))
      )
      return Effect.flatMap(traced ? inSpan(request, exchange.route, answered) : answered, (answer) =>
        Effect.as(
          report({
            method: request.method,
            route: exchange.route,
            status: answer.status,
            milliseconds: performance.now() - started,
            requestId,
            caller: exchange.caller
          }),
          identified(answer, requestId)
        )
      )
    })
  return app
})
