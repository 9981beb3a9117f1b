import * as Effect from "effect/Effect"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as Layer from "effect/Layer"
import type * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { MalformedAuthorization } from "../../domain/ApiKey.ts"
import { InvalidParameter } from "../../domain/Page.ts"
import { Authorization, CurrentCaller, QueryRules } from "./Api.ts"
import { errorResponse } from "./Errors.ts"
import { RequestInfo } from "./RequestInfo.ts"

/** Hands the caller that was admitted to the endpoint; without one, none is reached. */
export const authorization = Layer.succeed(Authorization, {
  bearer: (endpoint) =>
    Effect.flatMap(RequestInfo, ({ caller }) =>
      caller === undefined
        ? Effect.succeed(errorResponse(MalformedAuthorization))
        : Effect.provideService(endpoint, CurrentCaller, caller)
    )
})

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
