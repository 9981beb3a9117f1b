import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"
import * as Tracer from "effect/Tracer"
import type { HttpResponse, HttpRequest } from "../HttpMessage.ts"

/** Whether anybody receives spans. */
export const isTraced = Effect.map(Effect.tracer, (tracer) => tracer !== Tracer.nativeTracer)

/**
 * Answers a request within a span, in the trace that the caller's `traceparent` names, if it does: an error where the
 * service failed. Effect's own span of a request is not used: it holds the URL with its query.
 */
export const inSpan = (
  { method, headers: { traceparent } }: HttpRequest,
  route: string | undefined,
  answer: Effect.Effect<HttpResponse>
): Effect.Effect<HttpResponse> =>
  Effect.gen(function* () {
    const span = yield* Effect.makeSpan(route === undefined ? method : `${method} ${route}`, {
      kind: "server",
      parent: Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent }))),
      root: true,
      attributes: { "http.request.method": method, ...(route === undefined ? {} : { "http.route": route }) }
    })
    const answered = yield* Effect.withParentSpan(answer, span, { captureStackTrace: false })
    const { status } = answered
    span.attribute("http.response.status_code", status)
    span.end(yield* Clock.currentTimeNanos, status >= 500 ? Exit.fail(`answered ${status}`) : Exit.void)
    return answered
  })
