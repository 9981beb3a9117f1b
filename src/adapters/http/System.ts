import * as Effect from "effect/Effect"
import { Lifecycle } from "../../application/Lifecycle.ts"
import { Readiness } from "../../application/Readiness.ts"
import { Unavailable } from "../../application/Unavailable.ts"
import { conditional, type Representation } from "./Caching.ts"
import type { ApiError } from "./Errors.ts"
import { type Answer, entityHeaders, flat, type RequestMessage } from "./Message.ts"

/** The paths beside the API: no key, not counted (DESIGN.md section 8). */
export const systemPaths = ["/healthz", "/readyz", "/openapi.json", "/docs"] as const

const body = Buffer.from(JSON.stringify({ status: "ok" }))
const ok: Answer = {
  status: 200,
  headers: flat({ ...entityHeaders(body, "application/json"), "cache-control": "no-store" }),
  body
}

/** A page that is loaded and made when it is first asked for. */
const page = (load: () => Promise<Representation>) => {
  let loaded: Promise<Representation> | undefined
  return (request: RequestMessage) => {
    loaded ??= load()
    return Effect.map(
      Effect.promise(() => loaded!),
      (representation) => conditional(request, representation)
    )
  }
}

type SystemPath = (typeof systemPaths)[number]

/**
 * `/healthz` says that the process lives, `/readyz` that it can answer what it is asked; `/openapi.json` and `/docs`
 * describe the API.
 */
export const makeSystem = Effect.gen(function* () {
  const readiness = yield* Readiness
  const lifecycle = yield* Lifecycle
  const answers: Readonly<Record<SystemPath, (request: RequestMessage) => Effect.Effect<Answer, ApiError>>> =
    {
      "/healthz": () => Effect.succeed(ok),
      "/readyz": () =>
        Effect.as(lifecycle.phase === "serving" ? readiness.check : Effect.fail(Unavailable), ok),
      "/openapi.json": page(async () => (await import("./Documentation.ts")).openApiPage),
      "/docs": page(async () => (await import("./Documentation.ts")).docsPage())
    }
  return answers
})
