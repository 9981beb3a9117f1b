import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type { HttpServerResponse } from "effect/http/HttpServerResponse"
import * as HttpTraceContext from "effect/http/HttpTraceContext"
import * as Option from "effect/Option"

/** What a span of a request ends with: an error where the service failed. */
const outcome = (exit: Exit.Exit<HttpServerResponse, unknown>): Exit.Exit<unknown, unknown> =>
  Exit.isSuccess(exit) && exit.value.status >= 500 ? Exit.fail(`answered ${exit.value.status}`) : exit

/**
 * Answers a request within a span of its own, in the trace that the caller's `traceparent` names, if it does. Effect's
 * own span of a request is not used: it holds the URL with its query.
 */
export const inServerSpan = <E, R>(
  request: HttpServerRequest,
  route: string | undefined,
  answer: Effect.Effect<HttpServerResponse, E, R>
): Effect.Effect<HttpServerResponse, E, R> =>
  Effect.flatMap(
    Effect.makeSpan(route === undefined ? request.method : `${request.method} ${route}`, {
      kind: "server",
      parent: Option.getOrUndefined(HttpTraceContext.w3c(request.headers)),
      root: true,
      attributes: {
        "http.request.method": request.method,
        ...(route === undefined ? {} : { "http.route": route })
      }
    }),
    (span) =>
      answer.pipe(
        Effect.withParentSpan(span, { captureStackTrace: false }),
        Effect.onExit((exit) =>
          Effect.map(Clock.currentTimeNanos, (now) => {
            if (Exit.isSuccess(exit)) span.attribute("http.response.status_code", exit.value.status)
            span.end(now, outcome(exit))
          })
        )
      )
  )
