import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import {
  makeOperationalRoutes,
  type OperationalPath
} from "../../../../src/adapters/inbound/http/OperationalRoutes.ts"
import { PublicUrl } from "../../../../src/adapters/inbound/http/request/PublicUrl.ts"
import { Lifecycle } from "../../../../src/application/Lifecycle.ts"
import * as Outage from "../../../../src/application/Outage.ts"
import { Readiness } from "../../../../src/application/ports/Readiness.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"

/** Sends a request while the memory for responses has room for any body, or for none. */
const send = (path: OperationalPath, hasRoom: boolean, publicUrl?: string) =>
  Effect.flatMap(makeOperationalRoutes, (routes) =>
    routes[path]({
      request: { method: "GET", target: path, headers: { host: "a.example" } },
      hasRoom: () => hasRoom
    })
  ).pipe(
    Effect.provideService(PublicUrl, publicUrl),
    Effect.provideService(Readiness, { check: Effect.void }),
    Effect.provide([Lifecycle.serving, Outage.offLayer])
  )

describe("the pages, while clients read their responses too slowly", () => {
  it.effect("/openapi.json for the host of a request fails, because each host has a separate copy", () =>
    Effect.gen(function* () {
      assert.strictEqual(yield* Effect.flip(send("/openapi.json", false)), Unavailable)
      assert.strictEqual((yield* send("/openapi.json", true)).status, 200)
    })
  )

  it.effect(
    "/openapi.json for a public URL, /docs and the redirects are served, because all responses share one copy",
    () =>
      Effect.gen(function* () {
        for (const path of ["/openapi.json", "/docs", "/", "/docs/"] as const) {
          const response = yield* send(path, false, "https://prompts.example.com/base")
          assert.strictEqual(response.status, path.startsWith("/docs/") || path === "/" ? 308 : 200)
        }
      })
  )
})
