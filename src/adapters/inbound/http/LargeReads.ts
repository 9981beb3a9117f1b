import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Caller } from "../../../application/Admission.ts"
import { LargeReadPolicy, LargeReadDeferred } from "../../../application/LargeReadPolicy.ts"
import type { ApiError } from "./contract/Errors.ts"
import type { Endpoint, EndpointsByRoute } from "./Endpoints.ts"
import type { MatchedRoute } from "./request/Route.ts"
import type { BodyWithEtag } from "./response/Representation.ts"

/** One read of an endpoint. It holds only data, so it can be sent to another thread. */
export interface EndpointRead {
  readonly caller: Caller
  readonly matched: MatchedRoute
}

/** The large-read thread did not start. */
export class ThreadUnavailable extends Data.TaggedClass("ThreadUnavailable")<{ readonly reason: string }> {}

/**
 * The large-read thread. Fetching, resolving, encoding and hashing 8 MiB blocks an event loop for about
 * 80 ms. If this service is `undefined`, the main thread responds to all reads.
 */
export const LargeReads = Context.Reference<
  | {
      /** Responds to a read. Interruption ends the read in the large-read thread, too. */
      readonly respond: (read: EndpointRead) => Effect.Effect<BodyWithEtag, ApiError | ThreadUnavailable>
    }
  | undefined
>("prompt-retrieval/LargeReads", { defaultValue: () => undefined })

/** Wraps the endpoints so that large reads run in the large-read thread. */
export const withLargeReads = (endpoints: EndpointsByRoute): Effect.Effect<EndpointsByRoute> =>
  Effect.map(LargeReads, (largeReads) => {
    if (largeReads === undefined) return endpoints
    const deferLargeReads =
      (endpoint: Endpoint): Endpoint =>
      (caller, matched) =>
        endpoint(caller, matched).pipe(
          Effect.provideService(LargeReadPolicy, "defer"),
          Effect.catchDefect((defect) =>
            defect instanceof LargeReadDeferred
              ? Effect.catchTag(largeReads.respond({ caller, matched }), "ThreadUnavailable", () =>
                  endpoint(caller, matched)
                )
              : Effect.die(defect)
          )
        )
    return new Map([...endpoints].map(([route, endpoint]) => [route, deferLargeReads(endpoint)]))
  })
