import { createMcpHandler, INTERNAL_ERROR } from "@modelcontextprotocol/server"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import {
  makeWorkspacePermits,
  ReadGate,
  requestDeadlineMs,
  withDeadline
} from "../../../application/reading/ReadGate.ts"
import { describeError, type ErrorDescription } from "../contract/Errors.ts"
import type { ReceivedRequest } from "../http/MountedEndpoint.ts"
import { shorten, toErrorData } from "./CallErrors.ts"
import { makeServerFactory } from "./PromptServer.ts"

/** Maximum number of JSON values in a message. The package needs seconds to check some messages with more values. */
const maxValues = 2_000
/** The number of calls of a workspace that run at the same time. A call may resolve a whole page of prompts. */
const callsPerWorkspace = 2
/** Maximum length of the id of a message. Every response repeats the id. */
const maxIdLength = 100
/** Maximum size of an error whose texts are not truncated, in bytes. */
const maxErrorBytes = 512
const json = "application/json"
const withCallDeadline = withDeadline(requestDeadlineMs, describeError(Unavailable))
const makeBadRequest = (message: string) => ({ status: 400, code: "BAD_REQUEST", message, headers: {} })

/** Encodes an error. An error with an `id` is the error of a call. */
const encodeError = (description: ErrorDescription, id?: unknown): Buffer => {
  const { status, message } = description
  const error = { code: id === undefined ? status : INTERNAL_ERROR, message, data: toErrorData(description) }
  return Buffer.from(JSON.stringify({ jsonrpc: "2.0", id, error }))
}

/** Parses a message. Returns `undefined` if the bytes are not JSON in UTF-8. */
const parseMessage = (bytes: Uint8Array): unknown => {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  } catch {
    return undefined
  }
}

/** Returns the reason why the package must not get a message, if there is one. */
const findProblem = (message: unknown): string | undefined => {
  if (Array.isArray(message)) return "Batches are not supported"
  const id = Predicate.isObject(message) ? message.id : undefined
  if (typeof id === "string" && id.length > maxIdLength) return "The id is too long"
  const values = [message]
  for (const value of values) {
    if (values.length > maxValues) return `The message has more than ${maxValues} values`
    if (typeof value === "object" && value !== null) values.push(...Object.values(value).slice(0, maxValues))
  }
  return undefined
}

/** Returns the message of a stream of one event. Returns any other body unchanged. */
const unwrapEvent = (body: Buffer): Buffer => {
  const start = "event: message\ndata: "
  const isOneEvent = body.indexOf(start) === 0 && body.indexOf("\n\n") === body.length - 2
  return isOneEvent ? body.subarray(start.length, -2) : body
}

/** Truncates the texts of a large error, because the package repeats texts of the caller. */
const cutError = (json: Buffer): Buffer => {
  if (json.length <= maxErrorBytes || json.subarray(0, 10).toString() === '{"result":') return json
  const message = parseMessage(json)
  const truncate = (_: string, value: unknown) => (typeof value === "string" ? shorten(value) : value)
  return Predicate.isObject(message) && "error" in message
    ? Buffer.from(JSON.stringify(message, truncate))
    : json
}

/** Makes the endpoint for Streamable HTTP, the HTTP transport of MCP. No response stays open. */
export const makeHttpEndpoint = Effect.gen(function* () {
  const gate = yield* ReadGate
  const withPermit = makeWorkspacePermits(callsPerWorkspace)
  const { fetch } = createMcpHandler(yield* makeServerFactory)

  const forward = ({ headers, caller, requestId }: ReceivedRequest, parsedBody: unknown) =>
    Effect.promise(async (signal) => {
      const init = { method: "POST", headers: headers as Record<string, string>, signal }
      const authInfo = { token: "", clientId: caller.keyId, scopes: [], extra: { caller, requestId } }
      const response = await fetch(new Request("http://localhost/mcp", init), { authInfo, parsedBody })
      const body = cutError(unwrapEvent(Buffer.from(await response.arrayBuffer())))
      return { status: response.status, type: body.indexOf("{") === 0 ? json : "text/event-stream", body }
    })

  const respond = (request: ReceivedRequest) => {
    const { workspaceId } = request.caller
    let id: unknown
    const call = Effect.gen(function* () {
      const message = yield* gate.run(request.body.length, () => parseMessage(request.body))
      const problem = findProblem(message)
      if (problem !== undefined) return yield* Effect.fail(makeBadRequest(problem))
      if (Predicate.isObject(message)) id = message.id
      return yield* withPermit(workspaceId, forward(request, message))
    })
    // A client can match an error with its request only by the id.
    return Effect.catch(withCallDeadline(call), (error) =>
      id === undefined
        ? Effect.fail(error)
        : Effect.succeed({ status: 200, type: json, body: encodeError(error, id) })
    )
  }

  return { path: "/mcp", maxBodyBytes: 1024 * 1024, respond, encodeError }
})
