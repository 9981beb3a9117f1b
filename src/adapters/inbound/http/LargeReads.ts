import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type { Caller } from "../../../application/Admission.ts"
import { LargeRowPolicy, LargeRows } from "../../../application/LargeRows.ts"
import type { ApiError } from "./contract/Errors.ts"
import type { Endpoint, EndpointsByRoute } from "./Endpoints.ts"
import type { MatchedRoute } from "./request/Route.ts"
import type { TaggedBody } from "./response/Representation.ts"

/** One read of an endpoint. It holds only data, so it can be sent to another thread. */
export interface EndpointRead {
  readonly caller: Caller
  readonly matched: MatchedRoute
}

/** The thread for large reads did not start. */
export class NoThread {
  readonly _tag = "NoThread"
  readonly reason: string
  constructor(reason: string) {
    this.reason = reason
  }
}

/**
 * The thread that responds to reads of large rows. To fetch, resolve, encode and hash 8 MiB takes about 80 ms, in which the
 * event loop of this thread would serve nobody else. Without it (`undefined`), this thread responds to all reads.
 */
export const LargeReads = Context.Reference<
  | {
      /** Responds to a read. Interruption ends the read in the other thread, too. */
      readonly respond: (read: EndpointRead) => Effect.Effect<TaggedBody, ApiError | NoThread>
    }
  | undefined
>("prompt-retrieval/LargeReads", { defaultValue: () => undefined })

/** Returns the endpoints with their large reads left to the thread for them. */
export const withLargeReads = (endpoints: EndpointsByRoute): Effect.Effect<EndpointsByRoute> =>
  Effect.map(LargeReads, (largeReads) => {
    if (largeReads === undefined) return endpoints
    const leaveLargeRows =
      (endpoint: Endpoint): Endpoint =>
      (caller, matched) =>
        endpoint(caller, matched).pipe(
          Effect.provideService(LargeRowPolicy, "leave"),
          Effect.catchDefect((defect) =>
            defect instanceof LargeRows
              ? Effect.catchTag(largeReads.respond({ caller, matched }), "NoThread", () =>
                  endpoint(caller, matched)
                )
              : Effect.die(defect)
          )
        )
    return new Map([...endpoints].map(([route, endpoint]) => [route, leaveLargeRows(endpoint)]))
  })
