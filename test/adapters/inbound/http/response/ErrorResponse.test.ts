import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Logger from "effect/Logger"
import { BadRequest, InternalError } from "../../../../../src/adapters/inbound/http/contract/Errors.ts"
import { toHeaderPairs } from "../../../../../src/adapters/inbound/http/HttpMessage.ts"
import {
  makeRejection,
  respondToFailures,
  toErrorResponse
} from "../../../../../src/adapters/inbound/http/response/ErrorResponse.ts"
import { Unavailable } from "../../../../../src/application/ports/Unavailable.ts"
import { type PromptId, PromptNotFound } from "../../../../../src/domain/Prompt.ts"
import { ResolvedTooLarge } from "../../../../../src/domain/Resolution.ts"
import { formatJsonLine } from "../../../../../src/runtime/telemetry/JsonLogger.ts"
import { newId } from "../../../../support/archives.ts"

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

  it.effect("logs the id of a prompt whose resolved content is too large", () =>
    Effect.gen(function* () {
      const id = newId<PromptId>()
      const error = ResolvedTooLarge(id)
      assert.deepStrictEqual(yield* respond(Effect.fail(error)), {
        response: toErrorResponse(error),
        logged: [{ level: "warn", msg: "Resolved content is too large", prompt_id: id }]
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

describe("makeRejection", () => {
  it.each([
    ["keeps the request id of the caller", "caller-1", /^caller-1$/],
    ["replaces a request id that is not well-formed", "caller 1", /^[0-9a-f-]{36}$/],
    ["makes a request id if the caller sent none", undefined, /^[0-9a-f-]{36}$/]
  ])("%s and adds the common headers to the response", (_, header, expected) => {
    const { requestId, response } = makeRejection(BadRequest, header)
    assert.match(requestId, expected)
    const { status, headers, body } = toErrorResponse(BadRequest)
    assert.deepStrictEqual(
      { ...response, headers: toHeaderPairs(response).slice(0, 2) },
      {
        status,
        headers: [
          ["x-request-id", requestId],
          ["x-content-type-options", "nosniff"]
        ],
        body,
        isPermanent: false,
        isFreedWhenSent: false,
        workspace: undefined
      }
    )
    assert.deepStrictEqual(response.headers.slice(4), headers)
  })
})
