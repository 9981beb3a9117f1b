import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Headers from "effect/http/Headers"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"
import type { HttpRequest, HttpResponse } from "./HttpMessage.ts"

/**
 * Runs a request in a span. If the request has a `traceparent`, the span is part of the caller's trace. A status of 500
 * or more makes the span an error. The app does not use Effect's own HTTP span, because that span contains the URL with
 * the query.
 */
export const inSpan = Effect.fnUntraced(function* (
  { method, headers: { traceparent } }: HttpRequest,
  route: string | undefined,
  respond: Effect.Effect<HttpResponse>
) {
  const span = yield* Effect.makeSpan(route === undefined ? method : `${method} ${route}`, {
    kind: "server",
    parent: Option.getOrUndefined(HttpTraceContext.w3c(Headers.fromInput({ traceparent }))),
    root: true,
    attributes: { "http.request.method": method, ...(route === undefined ? {} : { "http.route": route }) }
  })
  const response = yield* Effect.withParentSpan(respond, span, { captureStackTrace: false })
  const { status } = response
  span.attribute("http.response.status_code", status)
  span.end(yield* Clock.currentTimeNanos, status >= 500 ? Exit.fail(`responded ${status}`) : Exit.void)
  return response
})
