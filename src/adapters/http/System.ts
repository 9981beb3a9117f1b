import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { Lifecycle } from "../../application/Lifecycle.ts"
import { Readiness } from "../../application/Readiness.ts"
import { Unavailable } from "../../application/Unavailable.ts"
import { conditional } from "./Caching.ts"
import type { Page } from "./Documentation.ts"
import { errorResponse } from "./Errors.ts"

/** The paths beside the API: no key, not counted (DESIGN.md section 8). */
export const systemPaths = ["/healthz", "/readyz", "/openapi.json", "/docs"] as const

const ok = HttpServerResponse.jsonUnsafe({ status: "ok" }, { headers: { "cache-control": "no-store" } })

/** A page that is loaded and made when it is first asked for. */
const page = (load: () => Promise<Page>) => {
  let loaded: Promise<Page> | undefined
  return Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    loaded ??= load()
    const { response, headers } = yield* Effect.promise(() => loaded!)
    return conditional(request, response, headers)
  })
}

/**
 * `/healthz` says that the process lives, `/readyz` that it can answer what it is asked; `/openapi.json` and `/docs`
 * describe the API.
 */
export const system = Layer.mergeAll(
  HttpRouter.add("GET", "/healthz", ok),
  HttpRouter.add(
    "GET",
    "/openapi.json",
    page(async () => (await import("./Documentation.ts")).openApiPage)
  ),
  HttpRouter.add(
    "GET",
    "/docs",
    page(async () => (await import("./Documentation.ts")).docsPage())
  ),
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const readiness = yield* Readiness
      const lifecycle = yield* Lifecycle
      yield* router.add(
        "GET",
        "/readyz",
        Effect.suspend(() =>
          lifecycle.phase === "serving" ? readiness.check : Effect.fail(Unavailable)
        ).pipe(
          Effect.as(ok),
          Effect.catch((error) => Effect.succeed(errorResponse(error)))
        )
      )
    })
  )
)
