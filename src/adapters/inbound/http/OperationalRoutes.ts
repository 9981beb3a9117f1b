import * as Effect from "effect/Effect"
import { Lifecycle } from "../../../application/Lifecycle.ts"
import { Readiness } from "../../../application/ports/Readiness.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { respondConditionally, type Representation } from "./response/Representation.ts"
import type { ApiError } from "./Errors.ts"
import { type HttpResponse, entityHeaders, toRawHeaders, type HttpRequest } from "./HttpMessage.ts"

/** The paths beside the API: no key, not counted (DESIGN.md section 8). */
export const operationalPaths = ["/healthz", "/readyz", "/openapi.json", "/docs"] as const

const body = Buffer.from(JSON.stringify({ status: "ok" }))
const ok: HttpResponse = {
  status: 200,
  headers: toRawHeaders({ ...entityHeaders(body, "application/json"), "cache-control": "no-store" }),
  body
}

/** A page that is loaded and made when it is first asked for. */
const page = (load: () => Promise<Representation>) => {
  let loaded: Promise<Representation> | undefined
  return (request: HttpRequest) => {
    loaded ??= load()
    return Effect.map(
      Effect.promise(() => loaded!),
      (representation) => respondConditionally(request, representation)
    )
  }
}

type SystemPath = (typeof operationalPaths)[number]

/**
 * `/healthz` says that the process lives, `/readyz` that it can answer what it is asked; `/openapi.json` and `/docs`
 * describe the API.
 */
export const makeOperationalRoutes = Effect.gen(function* () {
  const readiness = yield* Readiness
  const lifecycle = yield* Lifecycle
  const answers: Readonly<
    Record<SystemPath, (request: HttpRequest) => Effect.Effect<HttpResponse, ApiError>>
  > = {
    "/healthz": () => Effect.succeed(ok),
    "/readyz": () =>
      Effect.as(lifecycle.phase === "serving" ? readiness.check : Effect.fail(Unavailable), ok),
    "/openapi.json": page(async () => (await import("./docs/DocsPage.ts")).openApiPage),
    "/docs": page(async () => (await import("./docs/DocsPage.ts")).docsPage())
  }
  return answers
})
