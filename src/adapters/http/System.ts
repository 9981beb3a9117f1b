import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { Lifecycle } from "../../application/Lifecycle.ts"
import { Readiness } from "../../application/Readiness.ts"
import { Unavailable } from "../../application/Unavailable.ts"
import { errorResponse } from "./Errors.ts"

/** The paths beside the API: no key, not counted (DESIGN.md section 8). */
export const systemPaths = ["/healthz", "/readyz"] as const

const ok = HttpServerResponse.jsonUnsafe({ status: "ok" }, { headers: { "cache-control": "no-store" } })

/** `/healthz` says that the process lives, `/readyz` that it can answer what it is asked. */
export const system = Layer.mergeAll(
  HttpRouter.add("GET", "/healthz", ok),
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
