import * as Effect from "effect/Effect"
import { Lifecycle } from "../../../application/Lifecycle.ts"
import { Readiness } from "../../../application/ports/Readiness.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { ApiError } from "./contract/Errors.ts"
import { entityHeaders, type HttpRequest, type HttpResponse, toRawHeaders } from "./HttpMessage.ts"
import { type Representation, respondConditionally } from "./response/Representation.ts"

/** The paths outside the API. They require no key and do not count against rate limits. */
export const operationalPaths = ["/healthz", "/readyz", "/openapi.json", "/docs"] as const

export type OperationalPath = (typeof operationalPaths)[number]

type Handler = (request: HttpRequest) => Effect.Effect<HttpResponse, ApiError>

const okBody = Buffer.from(JSON.stringify({ status: "ok" }))
const okResponse: HttpResponse = {
  status: 200,
  headers: toRawHeaders({ ...entityHeaders(okBody, "application/json"), "cache-control": "no-store" }),
  body: okBody
}

/** Makes a handler for a page that is loaded on its first request. */
const serveLazily = (load: () => Promise<Representation>): Handler => {
  let loading: Promise<Representation> | undefined
  return (request) => {
    loading ??= load()
    const loaded = loading
    return Effect.map(
      Effect.promise(() => loaded),
      (representation) => respondConditionally(request, representation)
    )
  }
}

/**
 * Makes the handlers of the operational paths. `/healthz` reports that the process runs, `/readyz` that it can serve
 * requests; `/openapi.json` and `/docs` describe the API.
 */
export const makeOperationalRoutes = Effect.gen(function* () {
  const readiness = yield* Readiness
  const lifecycle = yield* Lifecycle
  const handlers: Readonly<Record<OperationalPath, Handler>> = {
    "/healthz": () => Effect.succeed(okResponse),
    "/readyz": () =>
      Effect.as(lifecycle.phase() === "serving" ? readiness.check : Effect.fail(Unavailable), okResponse),
    "/openapi.json": serveLazily(async () => (await import("./docs/DocsPage.ts")).openApiPage),
    "/docs": serveLazily(async () => (await import("./docs/DocsPage.ts")).makeDocsPage())
  }
  return handlers
})
