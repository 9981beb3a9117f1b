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
  /** Header values by their names in lower case. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** The token of the `Authorization` header; `undefined` if the header is missing or malformed. */
  readonly token: string | undefined
  readonly requestId: string
  readonly hasRoom: HasRoom
  /** Reads the body. Runs at most once. */
  readonly readBody: Effect.Effect<Uint8Array, BodyError>
  /** Returns true if no other response of the connection is in flight, so that a streamed response can start now. */
  readonly canStream: () => boolean
}

/** Writes the body of a streamed response. */
export interface BodyWriter {
  /** Writes a part of the body. Disconnects a client that does not read. */
  readonly write: (text: string) => void
  /** Ends the body. Has no effect once it has ended. */
  readonly end: () => void
}

/** A response whose body is written over time, such as a stream of events. */
export interface StreamedResponse {
  readonly status: number
  readonly headers: ReadonlyArray<string>
  /** Starts to write. The returned function runs once the body has ended or the client is gone. */
  readonly start: (writer: BodyWriter) => () => void
}

/** A response and the admitted caller. The caller is undefined if none was admitted. */
export interface MountedResponse {
  readonly caller: AdmittedCaller | undefined
  readonly response: HttpResponse | StreamedResponse
}

/**
 * An endpoint that another adapter serves on the server of the API. Its requests pass the same checks of the transport,
 * and its responses get the same common headers, log lines and metrics. `undefined` if there is no such endpoint.
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
