import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { AdmittedCaller } from "../../../application/access/Admission.ts"
import type { HttpRequest, HttpResponse } from "./HttpMessage.ts"

export interface MountedRequest extends Omit<HttpRequest, "target"> {
  /** The token of the `Authorization` header; `undefined` if the header is missing or malformed. */
  readonly token: string | undefined
  readonly requestId: string
}

/** A response and the admitted caller. `caller` is undefined if no caller was admitted. */
export interface MountedResponse {
  readonly caller: AdmittedCaller | undefined
  readonly response: HttpResponse
}

/**
 * An endpoint of another adapter on the HTTP server of the API. Requests to this endpoint pass the same checks of the
 * transport, and get the same common headers, log lines, metrics and spans as requests to the API. The service is
 * `undefined` if no other adapter has an endpoint.
 */
export class MountedEndpoint extends Context.Service<
  MountedEndpoint,
  | {
      readonly path: string
      /** Responds to a request. Never fails. */
      readonly respond: (request: MountedRequest) => Effect.Effect<MountedResponse>
    }
  | undefined
>()("prompt-retrieval/MountedEndpoint") {}
