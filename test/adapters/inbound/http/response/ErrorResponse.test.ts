import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { InternalError } from "../../../../../src/adapters/inbound/contract/Errors.ts"
import {
  respondToFailures,
  toErrorResponse
} from "../../../../../src/adapters/inbound/http/response/ErrorResponse.ts"
import { Unavailable } from "../../../../../src/application/ports/Unavailable.ts"
import { PromptNotFound } from "../../../../../src/domain/Prompt.ts"
import { formatJsonLine } from "../../../../../src/runtime/telemetry/JsonLogger.ts"

/** Returns the response to a request with the id "id", and the log entries about it. */
const respond = Effect.fnUntraced(function* (request: Parameters<typeof respondToFailures>[0]) {
  const logged: Array<Record<string, unknown>> = []
  const logger = Logger.map(formatJsonLine, (line) => {
    const { time: _, err, ...entry } = JSON.parse(line)
    logged.push(err === undefined ? entry : { ...entry, err: err.split("\n")[0] })
  })
  const response = yield* Effect.provide(respondToFailures(request, "id"), Logger.layer([logger]))
  return { response, logged }
})

describe("respondToFailures", () => {
  it.effect("responds to an expected error as the error table says, and logs nothing", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* respond(Effect.fail(PromptNotFound)), {
        response: toErrorResponse(PromptNotFound),
        logged: []
      })
    })
  )

  it.effect("responds to a defect with 500 and logs its cause with the request id", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* respond(Effect.die(new Error("went wrong"))), {
        response: toErrorResponse(InternalError),
        logged: [{ level: "error", msg: "Request failed", request_id: "id", err: "Error: went wrong" }]
      })
    })
  )

  it.effect("responds to an interruption with 503 and logs nothing", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* respond(Effect.interrupt), {
        response: toErrorResponse(Unavailable),
        logged: []
      })
    })
  )
})
