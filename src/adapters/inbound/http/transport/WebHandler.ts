import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { makeApp } from "../App.ts"
import { toErrorResponse } from "../Errors.ts"
import { withCommonHeaders, toHeaderPairs } from "../HttpMessage.ts"
import { chooseRequestId } from "../request/RequestId.ts"

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
      : withCommonHeaders(toErrorResponse(Unavailable), chooseRequestId(undefined))
    const isEmpty = method === "HEAD" || answer.body.length === 0
    return new Response(isEmpty ? null : (answer.body as Uint8Array<ArrayBuffer>), {
      status: answer.status,
      headers: toHeaderPairs(answer)
    })
  }
  return handler
})
