import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApi from "effect/http-api/HttpApi"
import type { Admission, AdmittedCaller } from "../../application/Admission.ts"
import { Unavailable } from "../../application/Unavailable.ts"
import { Api } from "./Api.ts"
import { cachingHeaders, conditional, etagOf } from "./Caching.ts"
import { type ApiError, errorResponse, InternalError, MethodNotAllowed, RouteNotFound } from "./Errors.ts"
import type { ReadyResponses } from "./ReadyResponses.ts"
import { RequestInfo, requestIdOf } from "./RequestInfo.ts"
import { report } from "./RequestLog.ts"
import { systemPaths } from "./System.ts"
import { type Target, targetReader } from "./Target.ts"
import { inSpan } from "./Tracing.ts"

/** The longest that a request may take; past it the answer is 503 (DESIGN.md section 8). */
const deadline = "5 seconds"

const apiPaths: Array<string> = []
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint }) => {
    apiPaths.push(endpoint.path)
  }
})

/** Reads a raw request target against every route there is. */
export const readTarget = targetReader([...apiPaths, ...systemPaths])

const isApi = (target: Target): boolean => target.route.startsWith("/api/")

const fail = (error: ApiError) => Effect.succeed(errorResponse(error))

const internalError = (cause: Cause.Cause<unknown>, requestId: string) =>
  Effect.logError("Request failed", cause).pipe(
    Effect.annotateLogs({ request_id: requestId }),
    Effect.andThen(fail(InternalError))
  )

/** Caching headers and the conditional answer for what succeeded (DESIGN.md section 5); errors carry their own. */
const cached = (
  request: HttpServerRequest.HttpServerRequest,
  response: HttpServerResponse.HttpServerResponse
): HttpServerResponse.HttpServerResponse =>
  response.status === 200 && response.body._tag === "Uint8Array"
    ? conditional(request, response, { ...cachingHeaders, etag: etagOf(response.body.body) })
    : response

/** The raw target, before anyone has tidied it; a web-standard Request has no rawer form than its URL. */
const rawTarget = (request: HttpServerRequest.HttpServerRequest): string => {
  const { url } = request.source as { readonly url?: string }
  return url ?? request.url
}

/**
 * The whole service as one effect from request to answer, which never fails: route and method, admission, the router
 * with the handlers behind it, deadline, caching, the headers of every answer, the log line. Admission comes before the
 * router, as a stranger's query is not looked at (DESIGN.md section 4), and as refusing must cost little. With `traced`
 * each request has a span. Answers of 200 are kept in `ready`.
 */
export const makeApp = <E, R>(
  router: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  admission: Admission["Service"],
  traced: boolean,
  ready: ReadyResponses | undefined
) => {
  const route = (
    request: HttpServerRequest.HttpServerRequest,
    target: Target,
    info: RequestInfo,
    requestId: string
  ) => {
    const routed = Effect.suspend(() =>
      router.pipe(
        Effect.provideService(HttpServerRequest.HttpServerRequest, request.modify({ url: target.url })),
        Effect.provideService(RequestInfo, info)
      )
    )
    const admitted = Effect.matchEffect(admission.admit(request.headers.authorization), {
      onFailure: fail,
      onSuccess: (caller) => {
        info.caller = caller
        return routed
      }
    })
    return (isApi(target) ? admitted : routed).pipe(
      Effect.timeoutOrElse({ duration: deadline, orElse: () => fail(Unavailable) }),
      Effect.catchCause((cause) =>
        Cause.hasInterruptsOnly(cause) ? Effect.failCause(cause) : internalError(cause, requestId)
      ),
      Effect.orDie,
      Effect.map((response) => (isApi(target) ? cached(request, response) : response))
    )
  }

  const keep = (
    request: HttpServerRequest.HttpServerRequest,
    { route }: Target,
    { headers: { etag }, body }: HttpServerResponse.HttpServerResponse,
    caller: AdmittedCaller,
    began: number | undefined
  ): void => {
    if (body._tag !== "Uint8Array") return
    const asked = { authorization: request.headers.authorization!, target: rawTarget(request), began }
    ready?.keep(asked, { caller, route, etag: etag!, body: body.body })
  }

  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const started = performance.now()
    const requestId = requestIdOf(request.headers["x-request-id"])
    const target = readTarget(rawTarget(request))
    const info: RequestInfo = { caller: undefined }
    const began = ready?.begin()
    const answer =
      target === undefined
        ? fail(RouteNotFound)
        : request.method !== "GET" && request.method !== "HEAD"
          ? fail(MethodNotAllowed)
          : route(request, target, info, requestId)
    const response = yield* traced ? inSpan(request, target?.route, answer) : answer
    if (response.status === 200 && target !== undefined && info.caller !== undefined) {
      keep(request, target, response, info.caller, began)
    }
    yield* report({
      method: request.method,
      route: target?.route,
      status: response.status,
      milliseconds: performance.now() - started,
      requestId,
      caller: info.caller
    })
    return HttpServerResponse.setHeaders(response, {
      "x-request-id": requestId,
      "x-content-type-options": "nosniff"
    })
  })
}

/** Path parameters may be as long as the request line: what is too long for an id is not found, like any other. */
export const routerConfig = {
  maxParamLength: 16 * 1024
} satisfies (typeof HttpRouter.RouterConfig)["Service"]
