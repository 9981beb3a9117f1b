import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { Admission, type AdmittedCaller } from "../../../application/access/Admission.ts"
import { toUnexpectedError } from "../../../application/observability/InternalError.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { requestDeadlineMs, withDeadline } from "../../../application/Deadline.ts"
import { isJsonObject, type JsonObject } from "../../../domain/Json.ts"
import { ReadScheduler } from "../../../application/reading/ReadScheduler.ts"
import { describeError, MethodNotAllowed, RequestTimeout } from "../contract/Errors.ts"
import { type BodyError, encodeBody, type HttpResponse } from "../http/HttpMessage.ts"
import type { MountedRequest, MountedResponse } from "../http/MountedEndpoint.ts"
import { bodyTooLarge, forbiddenOrigin, notAcceptable, toRpcError } from "./RpcErrors.ts"
import {
  encodeError,
  encodeResult,
  maxMessageBytes,
  parseMessage,
  type RpcId,
  type RpcError,
  type RpcRequest
} from "./JsonRpc.ts"
import { isListen, runMethod } from "./Methods.ts"
import { makePromptCatalogs } from "./PromptCatalog.ts"
import { findModeOfRequest, findVersionProblem, isAllowedOrigin } from "./RequestHeaders.ts"
import { statelessVersion } from "./ProtocolVersions.ts"
import { makeStreamOpener, makeSubscription, notificationStream, type StreamMessages } from "./Streams.ts"

/**
 * The minimum size of a body whose memory is freed as soon as the response is sent, in bytes. Smaller bodies wait for
 * the garbage collector.
 */
const largeBodyBytes = 64 * 1024

const makeResponse = (
  status: number,
  text: string,
  headers: Readonly<Record<string, string>> = {}
): HttpResponse => {
  const body = encodeBody(text)
  const all = ["cache-control", "no-store", "content-length", String(body.length)]
  if (text !== "") all.push("content-type", "application/json")
  for (const name in headers) if (name !== "cache-control") all.push(name, headers[name] as string)
  return { status, headers: all, body, isFreedWhenSent: body.length >= largeBodyBytes }
}

const methodNotAllowed: RpcError = {
  ...toRpcError(MethodNotAllowed),
  headers: { ...describeError(MethodNotAllowed).headers, allow: "GET, POST" }
}

const makeErrorResponse = (id: RpcId | undefined, error: RpcError): HttpResponse =>
  makeResponse(error.status, encodeError(id, error), error.headers)

const respondWithError = (id: RpcId | undefined, error: RpcError): Effect.Effect<HttpResponse> =>
  Effect.succeed(makeErrorResponse(id, error))

const bodyErrors: { readonly [Tag in BodyError["_tag"]]: RpcError } = {
  BodyTooLarge: bodyTooLarge,
  BodyIncomplete: toRpcError(RequestTimeout),
  BodiesTooLarge: toRpcError(Unavailable)
}

/** Responds to every failure. `toUnexpectedError` makes the error of an unexpected failure. */
const respondToFailures = (
  content: Effect.Effect<HttpResponse, RpcError>,
  id: RpcId | undefined,
  requestId: string
): Effect.Effect<HttpResponse> =>
  // Every call takes this path, and one operator is faster than an operator for each kind of failure.
  Effect.catchCause(content, (cause) => {
    const expected = Cause.findErrorOption(cause)
    if (expected._tag === "Some") return respondWithError(id, expected.value)
    return toUnexpectedError(cause, "Request failed").pipe(
      Effect.annotateLogs({ request_id: requestId }),
      Effect.map((error) => makeErrorResponse(id, toRpcError(error)))
    )
  })

const withCallDeadline = withDeadline(requestDeadlineMs, toRpcError(Unavailable))

/**
 * Makes the endpoint for Streamable HTTP, the HTTP transport of MCP. The checks of a request run in this order: method,
 * origin, `Accept`, admission as in the HTTP API, body, metadata, parameters.
 *
 * @param publicOrigin The origin of the service's own pages. Requests from these pages are allowed.
 */
export const makeHttpEndpoint = (publicOrigin: string | undefined) =>
  Effect.gen(function* () {
    const { admit } = yield* Admission
    const scheduler = yield* ReadScheduler
    const makeCatalog = yield* makePromptCatalogs
    const openCallerStream = yield* makeStreamOpener

    const openStream = (request: MountedRequest, caller: AdmittedCaller, messages: StreamMessages) =>
      openCallerStream(caller, request.token, messages)

    const respondToCall = (
      request: MountedRequest,
      caller: AdmittedCaller,
      message: RpcRequest
    ): Effect.Effect<HttpResponse, RpcError> => {
      const mode = findModeOfRequest(request.headers, message)
      if (typeof mode !== "string") return Effect.fail(mode)
      if (isListen(message, mode)) {
        const filter = message.params.notifications
        const wantsPrompts = isJsonObject(filter) && filter.promptsListChanged === true
        return openStream(request, caller, makeSubscription(message.id, wantsPrompts))
      }
      const { workspaceId: workspace } = caller
      const run = runMethod(message, { mode, catalog: makeCatalog(caller) })
      const encode = (result: JsonObject) =>
        scheduler.encode(
          workspace,
          result,
          (result) => encodeResult(message.id, result),
          (json) => makeResponse(200, json)
        )
      const respond = Effect.map(Effect.flatMap(run, encode), (response) => ({ ...response, workspace }))
      return withCallDeadline(scheduler.withPermit(workspace, respond))
    }

    const respondToPost = (
      request: MountedRequest,
      caller: AdmittedCaller,
      body: Uint8Array
    ): Effect.Effect<HttpResponse> => {
      const parsed = parseMessage(body)
      if (Result.isFailure(parsed)) return respondWithError(parsed.failure.id, parsed.failure.error)
      const message = parsed.success
      if (message._tag !== "Request") {
        const problem = findVersionProblem(request.headers)
        return problem === undefined
          ? Effect.succeed(makeResponse(202, ""))
          : respondWithError(undefined, problem)
      }
      return respondToFailures(respondToCall(request, caller, message), message.id, request.requestId)
    }

    /** Opens the stream of notifications. Version 2026-07-28 of the protocol does not have this stream. */
    const respondToGet = (request: MountedRequest, caller: AdmittedCaller): Effect.Effect<HttpResponse> => {
      const problem =
        request.headers["mcp-protocol-version"] === statelessVersion
          ? methodNotAllowed
          : findVersionProblem(request.headers)
      return respondToFailures(
        problem === undefined ? openStream(request, caller, notificationStream) : Effect.fail(problem),
        undefined,
        request.requestId
      )
    }

    const findRequestProblem = ({ method, headers }: MountedRequest): RpcError | undefined => {
      if (method !== "POST" && method !== "GET") return methodNotAllowed
      if (!isAllowedOrigin(headers.origin, publicOrigin)) return forbiddenOrigin
      const accepts = /text\/event-stream|text\/\*|\*\/\*/.test(headers.accept ?? "*/*")
      return method === "GET" && !accepts ? notAcceptable : undefined
    }

    const respond = (request: MountedRequest): Effect.Effect<MountedResponse> => {
      const problem = findRequestProblem(request)
      if (problem !== undefined)
        return Effect.succeed({ caller: undefined, response: makeErrorResponse(undefined, problem) })
      return Effect.matchCauseEffect(admit(request.token), {
        onFailure: (cause) =>
          withCaller(
            undefined,
            respondToFailures(
              Effect.mapError(Effect.failCause(cause), toRpcError),
              undefined,
              request.requestId
            )
          ),
        onSuccess: (caller) =>
          withCaller(
            caller,
            request.method === "GET"
              ? respondToGet(request, caller)
              : Effect.matchEffect(request.readBody(maxMessageBytes), {
                  onFailure: ({ _tag }) => respondWithError(undefined, bodyErrors[_tag]),
                  onSuccess: (body) => respondToPost(request, caller, body)
                })
          )
      })
    }

    return respond
  })

const withCaller = (
  caller: AdmittedCaller | undefined,
  content: Effect.Effect<HttpResponse>
): Effect.Effect<MountedResponse> => Effect.map(content, (response) => ({ caller, response }))
