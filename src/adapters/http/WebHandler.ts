import * as Effect from "effect/Effect"
import * as HttpEffect from "effect/http/HttpEffect"
import type { HttpServerRequest } from "effect/http/HttpServerRequest"
import type * as Scope from "effect/Scope"
import type { Admission } from "../../application/Admission.ts"
import type { Prompts } from "../../application/Prompts.ts"
import type { Readiness } from "../../application/Readiness.ts"
import { makeHttpApp, withoutUrlSpans } from "./Routes.ts"

/** A function from a web-standard request to its answer; it never rejects. */
export type WebHandler = (request: Request) => Promise<Response>

/** The API for any host that speaks in web-standard requests, the same answers as the server of its own gives. */
export const makeWebHandler: Effect.Effect<WebHandler, never, Prompts | Admission | Readiness | Scope.Scope> =
  Effect.gen(function* () {
    const app = yield* makeHttpApp()
    const context = yield* withoutUrlSpans(Effect.context<never>())
    const handler = HttpEffect.toWebHandlerWith<never, HttpServerRequest | Scope.Scope>(context)(app)
    return (request) => handler(request)
  })
