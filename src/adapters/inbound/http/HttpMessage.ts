import type * as Effect from "effect/Effect"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import type { RequestTimeout } from "../contract/Errors.ts"
import { STATUS_CODES } from "./NodeHttp.ts"

/** A request as the transport parsed it. */
export interface HttpRequest {
  readonly method: string
  /** The raw request target, not normalized. */
  readonly target: string
  /** Maps the name of each header, in lower case, to its value. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /**
   * Reads the body. The effect runs at most once. The body is empty as soon as the response is made or the connection is
   * closed.
   */
  readonly readBody: (limits: BodyLimits) => Effect.Effect<Uint8Array, BodyError>
  /**
   * Lets the response wait for a change, without a time limit of the transport. The transport calls `release` if the
   * wait must end early. Returns a function to call when the wait has ended, or `undefined` if the response must not
   * wait. The function is absent if the transport cannot wait.
   */
  readonly startWait?: (release: () => void) => (() => void) | undefined
}

/** The number of bytes that a body may have, and the workspace whose share of memory the body uses. */
export interface BodyLimits {
  readonly maxBytes: number
  readonly workspace: WorkspaceId
}

/** Returns true for GET and HEAD, the only methods that this API serves. */
export const isGetOrHead = ({ method }: HttpRequest): boolean => method === "GET" || method === "HEAD"

/** Bytes, or a text with one character for each byte. The length of either is the number of bytes. */
export type Body = Uint8Array | string

/** The largest body that is a text, in bytes. */
const maxTextBytes = 16 * 1024

/**
 * Encodes a text in UTF-8. A small body is a string: Node writes a string together with the headers, which costs a
 * third less than writing two buffers, and a cached string costs the garbage collector less than a buffer.
 */
export const encodeBody = (text: string): Body => {
  const bytes = Buffer.byteLength(text)
  if (bytes > maxTextBytes) return Buffer.from(text)
  return bytes === text.length ? text : Buffer.from(text).toString("latin1")
}

/** Converts a body to bytes. */
export const toBytes = (body: Body): Uint8Array<ArrayBuffer> =>
  typeof body === "string" ? Buffer.from(body, "latin1") : (body as Uint8Array<ArrayBuffer>)

/** A response for the transport to write. The transport leaves out the body of a response to HEAD. */
export interface HttpResponse {
  readonly status: number
  /** Alternating header names and values, as `writeHead` of `node:http` takes them. */
  readonly headers: ReadonlyArray<string>
  readonly body: Body
  /**
   * True if the body stays in memory as long as the process runs. In-flight responses then need no additional memory
   * for the body.
   */
  readonly isPermanent?: boolean
  /** True if only this response uses the body, whose memory is then freed as soon as the response is sent. */
  readonly isFreedWhenSent?: boolean
  /** The workspace whose share of memory the body uses until the client has received the body. */
  readonly workspace?: WorkspaceId | undefined
}

/**
 * Frees the memory of a body that nothing uses anymore. If bodies of several MiB waited for the garbage collector,
 * about every second body would trigger a collection of 10 ms or more.
 */
export const freeBody = (body: Body): void => {
  if (typeof body !== "string") (body.buffer as ArrayBuffer).transfer(0)
}

/** The body of a request is larger than the endpoint allows. */
export const BodyTooLarge = { _tag: "BodyTooLarge" } as const
/**
 * The body is too large, did not arrive completely in time, or would need more than the workspace's share of the memory
 * for bodies.
 */
export type BodyError = typeof BodyTooLarge | typeof RequestTimeout | Unavailable

/** Maps the name of each header, in lower case, to its value. */
export type HeaderFields = Readonly<Record<string, string>>

/** Converts headers to alternating names and values. */
export const toRawHeaders = (headers: HeaderFields): ReadonlyArray<string> => Object.entries(headers).flat()

export const toHeaderPairs = ({ headers }: HttpResponse): Array<[string, string]> =>
  headers.flatMap((name, index): Array<[string, string]> => {
    const value = headers[index + 1]
    return index % 2 === 0 && value !== undefined ? [[name, value]] : []
  })

/** Encodes the last response of a connection. */
export const encodeResponse = (response: HttpResponse): Uint8Array => {
  const { status, body } = response
  const headers = [...toHeaderPairs(response), ["date", new Date().toUTCString()], ["connection", "close"]]
  const lines = headers.map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join("")}\r\n`
  return Buffer.concat([Buffer.from(head), toBytes(body)])
}

export const makeEntityHeaders = (body: Body, contentType: string) => ({
  "content-type": contentType,
  "content-length": String(body.length)
})

/** Adds the headers that every response has: the request id and `nosniff`. */
export const withCommonHeaders = (
  { status, headers, body, isPermanent, isFreedWhenSent, workspace }: HttpResponse,
  requestId: string
): HttpResponse => ({
  status,
  headers: ["x-request-id", requestId, "x-content-type-options", "nosniff", ...headers],
  body,
  isPermanent: isPermanent === true,
  isFreedWhenSent: isFreedWhenSent === true,
  workspace
})
