import * as Effect from "effect/Effect"
import type * as HttpServerResponse from "effect/http/HttpServerResponse"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import { Prompts } from "../../application/Prompts.ts"
import { makePage, type Page, pageMeta, type Slice } from "../../domain/Page.ts"
import { Api, CurrentCaller } from "./Api.ts"
import { type ApiError, errorResponse } from "./Errors.ts"

/** The envelope of one resource (SPEC.md section 2.1). */
export const single = <A>(data: A) => ({ data })
/** The envelope of a page. */
export const list = <A>(page: Page, slice: Slice<A>) => ({
  data: slice.items,
  meta: pageMeta(page, slice.total)
})

/** Answers an expected error by the one table of errors. */
const orErrorResponse = <A, E extends ApiError, R>(
  effect: Effect.Effect<A, E, R>
): Effect.Effect<A | HttpServerResponse.HttpServerResponse, never, R> =>
  Effect.catch(effect, (error: E) => {
    const response = Effect.succeed(errorResponse(error))
    return error._tag === "ResolvedTooLarge"
      ? Effect.andThen(Effect.logError("Resolved content is too large", { prompt_id: error.id }), response)
      : response
  })

/** The five endpoints of SPEC.md section 4: query to page and filter, use case, envelope. */
export const handlers = HttpApiBuilder.group(
  Api,
  "prompts",
  Effect.fn(function* (group) {
    const prompts = yield* Prompts
    return group.handleAll({
      list: ({ query }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentCaller
          const page = yield* Effect.fromResult(makePage(query))
          return list(page, yield* prompts.list(caller, query, page))
        }).pipe(orErrorResponse),
      get: ({ params }) =>
        CurrentCaller.pipe(
          Effect.flatMap((caller) => prompts.get(caller, params.id)),
          Effect.map(single),
          orErrorResponse
        ),
      getResolved: ({ params }) =>
        CurrentCaller.pipe(
          Effect.flatMap((caller) => prompts.getResolved(caller, params.id)),
          Effect.map(single),
          orErrorResponse
        ),
      listVersions: ({ params, query }) =>
        Effect.gen(function* () {
          const caller = yield* CurrentCaller
          const page = yield* Effect.fromResult(makePage(query))
          return list(page, yield* prompts.listVersions(caller, params.id, page))
        }).pipe(orErrorResponse),
      getVersion: ({ params }) =>
        CurrentCaller.pipe(
          Effect.flatMap((caller) => prompts.getVersion(caller, params.id, params.version)),
          Effect.map(single),
          orErrorResponse
        )
    })
  })
)
