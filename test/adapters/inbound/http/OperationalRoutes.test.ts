import { expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { servePage } from "../../../../src/adapters/inbound/http/OperationalRoutes.ts"
import { representPage } from "../../../../src/adapters/inbound/http/HttpMessage.ts"

const request = { method: "GET", target: "/docs", headers: {}, readBody: () => Effect.never }

it.effect(
  "if the rendering of a page fails, the next request renders it again; a rendered page is kept",
  () =>
    Effect.gen(function* () {
      let renderings = 0
      const render = () => {
        renderings += 1
        if (renderings === 1) throw new Error("out of memory")
        return representPage("text", "text/html")
      }
      const respond = servePage(async () => {}, render)
      expect(Exit.hasDies(yield* Effect.exit(respond(request)))).toBe(true)
      const responses = yield* Effect.all([respond(request), respond(request)], { concurrency: 2 })
      expect(responses.map(({ status }) => status)).toEqual([200, 200])
      expect(renderings).toBe(2)
    })
)
