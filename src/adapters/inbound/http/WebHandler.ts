import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { makeApp } from "./App.ts"
import { toBytes, toHeaderPairs, withCommonHeaders } from "./HttpMessage.ts"
import { toErrorResponse } from "./response/ErrorResponse.ts"

/** A function that returns the response to a web-standard request. The promise never rejects. */
export type WebHandler = (request: Request) => Promise<Response>

const readBody = () => Effect.fail(Unavailable)

/**
 * Makes a handler of web-standard requests that serves the API, but not the Model Context Protocol. The app makes the
 * responses, as for the HTTP server.
 */
export const makeWebHandler = Effect.gen(function* () {
  const app = yield* makeApp()
  const run = Effect.runPromiseExitWith(yield* Effect.context<never>())
  const handler: WebHandler = async (request) => {
    const { method, url: target } = request
    const headers = Object.fromEntries(request.headers)
    const exit = await run(app({ method, target, headers, readBody }))
    // Running the app fails only if the API is closed.
    const response = Exit.isSuccess(exit)
      ? exit.value
      : withCommonHeaders(toErrorResponse(Unavailable), crypto.randomUUID())
    const bytes = toBytes(response.body)
    return new Response(method === "HEAD" || bytes.length === 0 ? null : bytes, {
      status: response.status,
      headers: toHeaderPairs(response)
    })
  }
  return handler
})
