import * as Context from "effect/Context"
import type * as Effect from "effect/Effect"
import type { AdmittedCaller } from "../../../application/access/Admission.ts"
import type { HasRoom, HttpResponse } from "./HttpMessage.ts"

/** The body of a request is larger than `maxBodyBytes` of the endpoint. */
export const BodyTooLarge = { _tag: "BodyTooLarge" } as const
/** The body of a request did not arrive completely in time. */
export const BodyIncomplete = { _tag: "BodyIncomplete" } as const
/** The bodies of all requests together need too much memory. */
export const BodiesTooLarge = { _tag: "BodiesTooLarge" } as const
export type BodyError = typeof BodyTooLarge | typeof BodyIncomplete | typeof BodiesTooLarge

export interface MountedRequest {
  readonly method: string
  /** Maps the name of each header, in lower case, to its value. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The token of the `Authorization` header; `undefined` if the header is missing or malformed. */
  readonly token: string | undefined
  readonly requestId: string
  readonly hasRoom: HasRoom
  /** Reads the body. The endpoint runs this effect at most once. */
  readonly readBody: Effect.Effect<Uint8Array, BodyError>
  /** Returns true if the connection has no other in-flight response. Only then can a streamed response start. */
  readonly canStream: () => boolean
}

/** Writes the body of a streamed response. */
export interface BodyWriter {
  /** Writes a part of the body. Disconnects a client that leaves too many bytes unread. */
  readonly write: (text: string) => void
  /** Ends the body. Has no effect if the body has already ended. */
  readonly end: () => void
}

/** A response whose body is written over time, such as a stream of events. */
export interface StreamedResponse {
  readonly status: number
  readonly headers: ReadonlyArray<string>
  /** Starts to write the body. Returns a function that runs once the body or the connection has ended. */
  readonly start: (writer: BodyWriter) => () => void
}

/** A response and the admitted caller. `caller` is undefined if no caller was admitted. */
export interface MountedResponse {
  readonly caller: AdmittedCaller | undefined
  readonly response: HttpResponse | StreamedResponse
}

/**
 * An endpoint of another adapter on the HTTP server of the API. The transport checks requests to this endpoint like
 * requests to the API. Responses get the same common headers, log lines and metrics as responses of the API. The
 * service is `undefined` if no other adapter has an endpoint.
 */
export class MountedEndpoint extends Context.Service<
  MountedEndpoint,
  | {
      readonly path: string
      readonly maxBodyBytes: number
      /** Responds to a request. Never fails. */
      readonly respond: (request: MountedRequest) => Effect.Effect<MountedResponse>
    }
  | undefined
>()("prompt-retrieval/MountedEndpoint") {}
