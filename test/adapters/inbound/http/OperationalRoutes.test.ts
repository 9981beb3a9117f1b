import { assert, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { makeOperationalRoutes } from "../../../../src/adapters/inbound/http/OperationalRoutes.ts"
import type { OperationalPath } from "../../../../src/adapters/inbound/contract/Api.ts"
import { toHeaderPairs } from "../../../../src/adapters/inbound/contract/HttpMessage.ts"
import { BasePath, PublicUrl } from "../../../../src/adapters/inbound/http/request/PublicUrl.ts"
import { Lifecycle } from "../../../../src/application/support/Lifecycle.ts"
import * as Outage from "../../../../src/application/freshness/Outage.ts"
import { Readiness } from "../../../../src/application/ports/Readiness.ts"

const send = (path: OperationalPath, publicUrl?: string) =>
  Effect.flatMap(makeOperationalRoutes, (routes) =>
    routes[path]({ method: "GET", target: path, headers: { host: "a.example" } })
  ).pipe(
    Effect.provideService(PublicUrl, publicUrl),
    Effect.provideService(BasePath, ""),
    Effect.provideService(Readiness, { check: Effect.void }),
    Effect.provide([Lifecycle.serving, Outage.offLayer])
  )

it.effect("the redirects go to /docs below the path of the public URL, and have no body", () =>
  Effect.gen(function* () {
    for (const [publicUrl, location] of [
      [undefined, "/docs"],
      ["https://prompts.example.com", "/docs"],
      ["https://prompts.example.com/a/b", "/a/b/docs"]
    ] as const)
      for (const path of ["/", "/docs/"] as const) {
        const response = yield* send(path, publicUrl)
        assert.strictEqual(response.body.length, 0)
        assert.deepStrictEqual(toHeaderPairs(response), [
          ["location", location],
          ["cache-control", "no-cache"],
          ["content-length", "0"]
        ])
      }
  })
)
