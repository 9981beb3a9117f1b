import * as Effect from "effect/Effect"
import * as HttpServerRequest from "effect/http/HttpServerRequest"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { Admission } from "../../application/Admission.ts"
import { InvalidParameter } from "../../domain/Page.ts"
import { Authorization, CurrentCaller, QueryRules } from "./Api.ts"
import { errorResponse } from "./Errors.ts"
import { RequestInfo } from "./RequestInfo.ts"

/** Admission before decoding: a stranger with a bad query is answered 401, not 400 (DESIGN.md section 4). */
export const authorization = Layer.effect(
  Authorization,
  Effect.gen(function* () {
    const admission = yield* Admission
    return Authorization.of({
      bearer: (endpoint) =>
        Effect.gen(function* () {
          const request = yield* HttpServerRequest.HttpServerRequest
          const info = yield* RequestInfo
          return yield* Effect.matchEffect(admission.admit(request.headers.authorization), {
            onFailure: (refusal) => Effect.succeed(errorResponse(refusal)),
            onSuccess: (caller) => {
              info.caller = caller
              return Effect.provideService(endpoint, CurrentCaller, caller)
            }
          })
        })
    })
  })
)

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The first query parameter at fault and its rule; the value itself is never told. */
export const invalidParameter = (error: Schema.SchemaError): InvalidParameter => {
  const issue = format(error.issue).issues[0]!
  return InvalidParameter(`${String(issue.path?.[0])} ${issue.message}`)
}

/** What a query breaks is the caller's to mend; anything else that does not fit its schema is a defect. */
export const queryRules = HttpApiMiddleware.layerSchemaErrorTransform(QueryRules, (error) =>
  error.kind === "Query" ? Effect.succeed(errorResponse(invalidParameter(error.cause))) : Effect.die(error)
)
