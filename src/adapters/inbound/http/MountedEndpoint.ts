import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { Admission, type AdmittedCaller } from "../../../application/access/Admission.ts"
import { toError } from "../../../application/observability/InternalError.ts"
import { withRequestDeadline } from "../../../application/reading/ReadGate.ts"
import { describeError, type ErrorDescription, MethodNotAllowed } from "../contract/Errors.ts"
import { type HttpRequest, type HttpResponse, makeEntityHeaders, toRawHeaders } from "./HttpMessage.ts"
import type { RequestContext } from "./request/RequestRecord.ts"
import { Address } from "./Address.ts"
import { parseBearerToken } from "./request/RequestHead.ts"

const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Returns true if a request with this `Origin` may be served. The `Origin` of this machine and of the service's own
 * pages is allowed. A request without `Origin` is allowed, because browsers send `Origin` with every POST. `Host` is not
 * compared with `Origin`: an attacker can point the host name of a web page to this machine, and then both headers have
 * that name.
 */
export const isAllowedOrigin = (origin: string | undefined, publicOrigin: string | undefined): boolean => {
  if (origin === undefined || origin === publicOrigin) return true
  if (!/^https?:\/\/[^/]+$/.test(origin) || !URL.canParse(origin)) return false
  return loopbackHosts.has(new URL(origin).hostname)
}

/** A request that passed all checks, with its whole body. */
export interface ReceivedRequest extends Pick<HttpRequest, "headers"> {
  readonly requestId: string
  readonly caller: AdmittedCaller
  /** Empty if the client has disconnected. */
  readonly body: Uint8Array
}

export interface MountedResponse {
  readonly status: number
  /** The media type of the body. Unused if the body is empty. */
  readonly type: string
  readonly body: Uint8Array
}

/**
 * An endpoint of another adapter on the HTTP server of the API, for POST requests. Requests to this endpoint pass the
 * same transport checks and the same admission as requests to the API. They also get the same common headers, log
 * lines, metrics and spans. The service is `undefined` if no other adapter has an endpoint.
 */
export class MountedEndpoint extends Context.Service<
  MountedEndpoint,
  | {
      readonly path: string
      readonly maxBodyBytes: number
      readonly respond: (request: ReceivedRequest) => Effect.Effect<MountedResponse, ErrorDescription>
      /** Encodes the body of an error response in JSON. */
      readonly encodeError: (error: ErrorDescription) => Uint8Array
    }
  | undefined
>()("prompt-retrieval/MountedEndpoint") {}

const forbiddenOrigin = {
  status: 403,
  code: "FORBIDDEN_ORIGIN",
  message: "The origin is not allowed",
  headers: {}
}
const bodyTooLarge = { status: 413, code: "BODY_TOO_LARGE", message: "The body is too large", headers: {} }
const methodNotAllowed = { ...describeError(MethodNotAllowed), headers: { allow: "POST" } }

const makeResponse = (
  { status, type, body }: MountedResponse,
  headers: Readonly<Record<string, string>> = {}
): HttpResponse => ({
  status,
  headers: toRawHeaders({
    ...headers,
    "cache-control": "no-store",
    ...(body.length === 0 ? { "content-length": "0" } : makeEntityHeaders(body, type))
  }),
  body
})

/**
 * Makes the function that responds to the requests of a mounted endpoint. The checks of a request run in this order:
 * method, origin, admission as in the HTTP API, body. Then the caller is checked again, because the key may have been
 * revoked while the body arrived.
 */
export const makeRespondMounted = Effect.gen(function* () {
  const admission = yield* Admission
  const { publicUrl } = yield* Address
  const publicOrigin = publicUrl === undefined ? undefined : new URL(publicUrl).origin

  return (
    context: RequestContext,
    { path, maxBodyBytes, respond, encodeError }: NonNullable<MountedEndpoint["Service"]>
  ): Effect.Effect<HttpResponse> => {
    const { requestId } = context
    const { method, headers, readBody } = context.request
    context.route = path
    const token = parseBearerToken(headers.authorization)
    const receive = Effect.gen(function* () {
      if (method !== "POST") return yield* Effect.fail(methodNotAllowed)
      if (!isAllowedOrigin(headers.origin, publicOrigin)) return yield* Effect.fail(forbiddenOrigin)
      context.caller = yield* withRequestDeadline(admission.admit(token))
      const { workspaceId: workspace } = context.caller
      const body = yield* readBody({ maxBytes: maxBodyBytes, workspace })
      const caller = yield* withRequestDeadline(admission.check(token))
      const response = yield* respond({ headers, requestId, caller, body })
      return { ...makeResponse(response), workspace }
    })
    return Effect.catchCause(receive, (cause) =>
      Effect.map(toError(cause, requestId), (error) => {
        const description = !("_tag" in error)
          ? error
          : error._tag === "BodyTooLarge"
            ? bodyTooLarge
            : describeError(error)
        const { status, headers } = description
        return makeResponse({ status, type: "application/json", body: encodeError(description) }, headers)
      })
    )
  }
})
