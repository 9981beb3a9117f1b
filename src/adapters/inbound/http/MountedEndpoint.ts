import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { HttpResponse } from "./HttpMessage.ts"
import type { RequestContext } from "./RequestContext.ts"

/**
 * An endpoint of another adapter on the HTTP server of the API. The transport checks requests to this endpoint in the
 * same way as requests to the API. The common response headers, log lines, metrics and spans are the same too.
 */
export interface MountedEndpoint {
  readonly path: string
  /** Responds to a request. Sets `context.route` before it returns, and `context.caller` when the caller is known. */
  readonly respond: (context: RequestContext) => Effect.Effect<HttpResponse>
}

/** The endpoint to mount. `undefined` by default. */
export const MountedEndpoint = Context.Reference<MountedEndpoint | undefined>(
  "prompt-retrieval/adapters/inbound/http/MountedEndpoint",
  { defaultValue: () => undefined }
)
