import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { makeApp } from "./App.ts"
import { pairsOf } from "./Message.ts"

/** A function from a web-standard request to its answer; it never rejects. */
export type WebHandler = (request: Request) => Promise<Response>

/** What is answered to who no longer waits. */
const clientClosedRequest = 499

/** The API for any host that speaks in web-standard requests, the same answers as the server of its own gives. */
export const makeWebHandler = Effect.gen(function* () {
  const app = yield* makeApp
  const run = Effect.runPromiseExitWith(yield* Effect.context<never>())
  const handler: WebHandler = async (request) => {
    const { method, url: target, signal } = request
    const headers = Object.fromEntries(request.headers)
    const exit = await run(app({ method, target, headers }), { signal })
    if (Exit.isFailure(exit)) return new Response(null, { status: clientClosedRequest })
    const { status, body } = exit.value
    const isEmpty = method === "HEAD" || body.length === 0
    return new Response(isEmpty ? null : (body as Uint8Array<ArrayBuffer>), {
      status,
      headers: pairsOf(exit.value)
    })
  }
  return handler
})
