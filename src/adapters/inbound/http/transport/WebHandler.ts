import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { makeApp } from "../App.ts"
import { toHeaderPairs } from "../../contract/HttpMessage.ts"
import { makeRejection } from "../response/ErrorResponse.ts"

/** A function from a web-standard request to its response. It never rejects. */
export type WebHandler = (request: Request) => Promise<Response>

/** Makes the API for a host of web-standard requests. The responses equal those of the HTTP server. */
export const makeWebHandler = Effect.gen(function* () {
  const app = yield* makeApp
  const run = Effect.runPromiseExitWith(yield* Effect.context<never>())
  const handler: WebHandler = async (request) => {
    const { method, url: target } = request
    const headers = Object.fromEntries(request.headers)
    const exit = await run(app({ method, target, headers }))
    // The app only fails to run once the API is closed.
    const response = Exit.isSuccess(exit) ? exit.value : makeRejection(Unavailable).response
    const isEmpty = method === "HEAD" || response.body.length === 0
    return new Response(isEmpty ? null : (response.body as Uint8Array<ArrayBuffer>), {
      status: response.status,
      headers: toHeaderPairs(response)
    })
  }
  return handler
})
