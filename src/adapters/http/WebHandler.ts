import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Unavailable } from "../../application/Unavailable.ts"
import { makeApp } from "./App.ts"
import { refusal } from "./Errors.ts"
import { identified, pairsOf } from "./Message.ts"
import { requestIdOf } from "./RequestId.ts"

/** A function from a web-standard request to its answer; it never rejects. */
export type WebHandler = (request: Request) => Promise<Response>

/** The API for any host that speaks in web-standard requests, the same answers as the server of its own gives. */
export const makeWebHandler = Effect.gen(function* () {
  const app = yield* makeApp
  const run = Effect.runPromiseExitWith(yield* Effect.context<never>())
  const handler: WebHandler = async (request) => {
    const { method, url: target } = request
    const headers = Object.fromEntries(request.headers)
    const exit = await run(app({ method, target, headers }))
    const answer = Exit.isSuccess(exit)
      ? exit.value
      : identified(refusal(Unavailable), requestIdOf(undefined))
    const isEmpty = method === "HEAD" || answer.body.length === 0
    return new Response(isEmpty ? null : (answer.body as Uint8Array<ArrayBuffer>), {
      status: answer.status,
      headers: pairsOf(answer)
    })
  }
  return handler
})
