import * as Effect from "effect/Effect"
import { Lifecycle } from "../../../application/Lifecycle.ts"
import { Readiness } from "../../../application/ports/Readiness.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { ApiError } from "./Errors.ts"
import { entityHeaders, type HttpRequest, type HttpResponse, toRawHeaders } from "./HttpMessage.ts"
import { type Representation, respondConditionally } from "./response/Representation.ts"

/** The paths outside the API: they need no key and no rate limit counts them. */
export const operationalPaths = ["/healthz", "/readyz", "/openapi.json", "/docs"] as const

export type OperationalPath = (typeof operationalPaths)[number]

type Handler = (request: HttpRequest) => Effect.Effect<HttpResponse, ApiError>

const body = Buffer.from(JSON.stringify({ status: "ok" }))
const ok: HttpResponse = {
  status: 200,
  headers: toRawHeaders({ ...entityHeaders(body, "application/json"), "cache-control": "no-store" }),
  body
}

/** Serves a page that is loaded on its first request. */
const serveLazily = (load: () => Promise<Representation>): Handler => {
  let loaded: Promise<Representation> | undefined
  return (request) => {
    loaded ??= load()
    return Effect.map(
      Effect.promise(() => loaded!),
      (representation) => respondConditionally(request, representation)
    )
  }
}

/**
 * Makes the handlers of the operational paths. `/healthz` tells that the process runs, `/readyz` that it can serve
 * requests; `/openapi.json` and `/docs` describe the API.
 */
export const makeOperationalRoutes = Effect.gen(function* () {
  const readiness = yield* Readiness
  const lifecycle = yield* Lifecycle
  const handlers: Readonly<Record<OperationalPath, Handler>> = {
    "/healthz": () => Effect.succeed(ok),
    "/readyz": () =>
      Effect.as(lifecycle.phase() === "serving" ? readiness.check : Effect.fail(Unavailable), ok),
    "/openapi.json": serveLazily(async () => (await import("./docs/DocsPage.ts")).openApiPage),
    "/docs": serveLazily(async () => (await import("./docs/DocsPage.ts")).docsPage())
  }
  return handlers
})
