import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as HttpRouter from "effect/http/HttpRouter"
import * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as Layer from "effect/Layer"
import { Readiness } from "../../application/Readiness.ts"
import { Unavailable } from "../../application/Unavailable.ts"
import { errorResponse } from "./Errors.ts"

/** The paths beside the API: no key, not counted (DESIGN.md section 8). */
export const systemPaths = ["/healthz", "/readyz"] as const

/** Whether the server is on its way out: it still answers, but wants no new traffic. */
export class Draining extends Context.Service<Draining, { now: boolean }>()("prompt-retrieval/Draining") {
  static readonly layer = Layer.sync(Draining, () => ({ now: false }))
}

const ok = HttpServerResponse.jsonUnsafe({ status: "ok" }, { headers: { "cache-control": "no-store" } })

/** `/healthz` says that the process lives, `/readyz` that it can answer what it is asked. */
export const system = Layer.mergeAll(
  HttpRouter.add("GET", "/healthz", ok),
  HttpRouter.use((router) =>
    Effect.gen(function* () {
      const readiness = yield* Readiness
      const draining = yield* Draining
      yield* router.add(
        "GET",
        "/readyz",
        Effect.suspend(() => (draining.now ? Effect.fail(Unavailable) : readiness.check)).pipe(
          Effect.as(ok),
          Effect.catch((error) => Effect.succeed(errorResponse(error)))
        )
      )
    })
  )
)
