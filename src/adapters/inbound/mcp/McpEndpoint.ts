import { createMcpHandler, INTERNAL_ERROR } from "@modelcontextprotocol/server"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { Admission, type AdmittedCaller } from "../../../application/Admission.ts"
import { toError } from "../../../application/InternalError.ts"
import { makeWorkspacePermits, ReadGate, withRequestDeadline } from "../../../application/Prompts.ts"
import { type ApiError, describeError, type ErrorDescription, MethodNotAllowed } from "../contract/Errors.ts"
import { Address } from "../http/Address.ts"
import { type BodyError, type HttpResponse, makeEntityHeaders, toRawHeaders } from "../http/HttpMessage.ts"
import type { MountedEndpoint } from "../http/MountedEndpoint.ts"
import { parseBearerToken, type RequestContext } from "../http/RequestContext.ts"
import { shorten, toErrorData } from "./CallErrors.ts"
import { makeServerFactory } from "./PromptServer.ts"

/** Maximum number of JSON values in a message. The MCP package can need seconds to check a larger message. */
const maxValues = 2_000
/** Maximum number of calls of one workspace that run at the same time. A call can resolve a whole page of prompts. */
const callsPerWorkspace = 2
/** Maximum length of the id of a message. Every response repeats the id. */
const maxIdLength = 100
/** The size of an error, in bytes, above which the endpoint truncates the error's texts. */
const maxErrorBytes = 512
const maxBodyBytes = 1024 * 1024
const path = "/mcp"
const json = "application/json"
const makeError = (status: number, code: string, message: string): ErrorDescription => ({
  status,
  code,
  message,
  headers: {}
})
const forbiddenOrigin = makeError(403, "FORBIDDEN_ORIGIN", "The origin is not allowed")
const bodyTooLarge = makeError(413, "BODY_TOO_LARGE", "The body is too large")
const methodNotAllowed = { ...describeError(MethodNotAllowed), headers: { allow: "POST" } }

const loopbackHosts: ReadonlySet<string> = new Set(["localhost", "127.0.0.1", "[::1]"])

/**
 * Returns true if the endpoint accepts a request with this `Origin`: an origin of this machine, the origin of the
 * service's own pages, or none. A request without `Origin` is not from a browser, because browsers send `Origin` with
 * every POST. The check ignores `Host`, because an attacker can point the host name of a web page to this machine.
 * `Origin` and `Host` then both contain this name.
 */
export const isAllowedOrigin = (origin: string | undefined, publicOrigin: string | undefined): boolean => {
  if (origin === undefined || origin === publicOrigin) return true
  if (!/^https?:\/\/[^/]+$/.test(origin) || !URL.canParse(origin)) return false
  return loopbackHosts.has(new URL(origin).hostname)
}

const describe = (error: ErrorDescription | ApiError | BodyError): ErrorDescription => {
  if (!("_tag" in error)) return error
  return error._tag === "BodyTooLarge" ? bodyTooLarge : describeError(error)
}

/** Encodes an error. `id` is the id of the failed call; undefined if the error belongs to no call. */
const encodeError = (description: ErrorDescription, id?: unknown): Buffer => {
  const { status, message } = description
  const error = { code: id === undefined ? status : INTERNAL_ERROR, message, data: toErrorData(description) }
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, error }))
}

/** Parses a message. Returns `undefined` if the bytes are not JSON in UTF-8. */
const parseMessage = (bytes: Uint8Array): unknown =>
  Result.getOrUndefined(Result.try(() => JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))))

/** Returns true for a JSON-RPC id that is short enough, and for the missing id of a notification. */
const isValidId = (id: unknown): boolean =>
  typeof id === "string" ? id.length <= maxIdLength : typeof id === "number" || id == null

/** Returns the reason why a message must not reach the MCP package, or `undefined` if there is no reason. */
const findProblem = (message: unknown): string | undefined => {
  if (Array.isArray(message)) return "Batches are not supported"
  if (Predicate.isObject(message) && !isValidId(message.id))
    return `The id is neither a number nor a string of at most ${maxIdLength} characters`
  const values = [message]
  for (const value of values) {
    if (values.length > maxValues) return `The message has more than ${maxValues} values`
    if (typeof value === "object" && value !== null) values.push(...Object.values(value).slice(0, maxValues))
  }
  return undefined
}

/** If a body is a stream with one event, returns the message of this event. Otherwise, returns the body. */
const unwrapEvent = (body: Buffer): Buffer => {
  const start = "event: message\ndata: "
  const isOneEvent = body.indexOf(start) === 0 && body.indexOf("\n\n") === body.length - 2
  return isOneEvent ? body.subarray(start.length, -2) : body
}

/** Truncates the texts of a large error, because the MCP package repeats texts of the caller. */
const cutError = (json: Buffer): Buffer => {
  if (json.length <= maxErrorBytes || json.subarray(0, 10).toString() === '{"result":') return json
  const message = parseMessage(json)
  const truncate = (_: string, value: unknown) => (typeof value === "string" ? shorten(value) : value)
  return Predicate.isObject(message) && "error" in message
    ? Buffer.from(JSON.stringify(message, truncate))
    : json
}

/** Makes a response. `type` is the media type of a body that is not empty. */
const makeResponse = (
  status: number,
  type: string,
  body: Uint8Array,
  headers: ErrorDescription["headers"] = {}
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
 * Makes the endpoint for Streamable HTTP, the HTTP transport of MCP. No response stays open for later messages. The
 * checks of a request run in this order: method, origin, admission as in the HTTP API, body. Then the endpoint checks
 * the caller again, because the key may have been revoked while the body arrived.
 */
export const makeMcpEndpoint = Effect.gen(function* () {
  const admission = yield* Admission
  const gate = yield* ReadGate
  const { publicUrl } = yield* Address
  const publicOrigin = publicUrl === undefined ? undefined : new URL(publicUrl).origin
  const withPermit = yield* makeWorkspacePermits(callsPerWorkspace)
  const { fetch } = createMcpHandler(yield* makeServerFactory)

  const forward = ({ request, requestId }: RequestContext, caller: AdmittedCaller, parsedBody: unknown) =>
    Effect.promise(async (signal) => {
      const init = { method: "POST", headers: request.headers as Record<string, string>, signal }
      const authInfo = { token: "", clientId: caller.keyId, scopes: [], extra: { caller, requestId } }
      const response = await fetch(new Request("http://localhost/mcp", init), { authInfo, parsedBody })
      const body = cutError(unwrapEvent(Buffer.from(await response.arrayBuffer())))
      return makeResponse(response.status, body.indexOf("{") === 0 ? json : "text/event-stream", body)
    })

  const respondToMessage = (context: RequestContext, caller: AdmittedCaller, body: Uint8Array) => {
    let id: unknown
    const call = Effect.gen(function* () {
      const message = yield* gate.runStep(body.length, () => parseMessage(body))
      const problem = findProblem(message)
      if (problem !== undefined) return yield* Effect.fail(makeError(400, "BAD_REQUEST", problem))
      if (Predicate.isObject(message)) id = message.id
      return yield* withPermit(caller.workspaceId, forward(context, caller, message))
    })
    // A client can match an error with its request only by the id.
    return Effect.catch(withRequestDeadline(call), (error) =>
      id === undefined
        ? Effect.fail(error)
        : Effect.succeed(makeResponse(200, json, encodeError(describe(error), id)))
    )
  }

  const receive = Effect.fnUntraced(function* (context: RequestContext) {
    const { method, headers, readBody } = context.request
    if (method !== "POST") return yield* Effect.fail(methodNotAllowed)
    if (!isAllowedOrigin(headers.origin, publicOrigin)) return yield* Effect.fail(forbiddenOrigin)
    const token = parseBearerToken(headers.authorization)
    context.caller = yield* withRequestDeadline(admission.admit(token))
    const { workspaceId: workspace } = context.caller
    const body = yield* readBody({ maxBytes: maxBodyBytes, workspace })
    const caller = yield* withRequestDeadline(admission.check(token))
    return { ...(yield* respondToMessage(context, caller, body)), workspace }
  })

  const respond = (context: RequestContext): Effect.Effect<HttpResponse> => {
    context.route = path
    return Effect.catchCause(receive(context), (cause) =>
      Effect.map(toError(cause, context.requestId), (error) => {
        const description = describe(error)
        return makeResponse(description.status, json, encodeError(description), description.headers)
      })
    )
  }

  return { path, respond } satisfies MountedEndpoint
})
