import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"

/** Whether anybody receives spans. */
export const isTraced = Effect.map(Effect.tracer, (tracer) => tracer !== Tracer.nativeTracer)

/**
 * Begins the span of a request, in the trace that the caller's `traceparent` names, if it does. Effect's own span of a
 * request is not used: it holds the URL with its query.
 */
export const beginSpan = (
  method: string,
  route: string | undefined,
  traceparent: string | undefined
): Effect.Effect<Tracer.Span> =>
  Effect.makeSpan(route === undefined ? method : `${method} ${route}`, {
    kind: "server",
    parent: Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent }))),
    root: true,
    attributes: { "http.request.method": method, ...(route === undefined ? {} : { "http.route": route }) }
  })

/** Ends the span of a request that was answered with a status: an error where the service failed. */
export const endSpan = (span: Tracer.Span, status: number): Effect.Effect<void> =>
  Effect.map(Clock.currentTimeNanos, (now) => {
    span.attribute("http.response.status_code", status)
    span.end(now, status >= 500 ? Exit.fail(`answered ${status}`) : Exit.void)
  })

/** Answers a request within its span. */
export const inSpan = <E, R>(
  request: HttpServerRequest,
  route: string | undefined,
  answer: Effect.Effect<HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse, E, R> =>
  Effect.flatMap(beginSpan(request.method, route, request.headers.traceparent), (span) =>
    answer.pipe(
      Effect.withParentSpan(span, { captureStackTrace: false }),
      Effect.tap((response) => endSpan(span, response.status))
    )
  )
