import * as Effect from "effect/Effect"
import { isJsonObject, type JsonObject } from "../../../domain/Json.ts"
import { fillSlots } from "../../../domain/Resolution.ts"
import { filledTooLarge } from "./RpcErrors.ts"
import { makeInvalidParams, makeProtocolError, type RpcError, type RpcRequest, rpcCodes } from "./JsonRpc.ts"
import type { ListedPrompt, PromptCatalog } from "./PromptCatalog.ts"
import {
  completeResult,
  type ProtocolMode,
  initializedVersions,
  isInitializedVersion,
  serverInfo,
  supportedVersions
} from "./ProtocolVersions.ts"
import { toToolError, tools } from "./Tools.ts"

export interface MethodContext {
  readonly mode: ProtocolMode
  readonly catalog: PromptCatalog
}

type Method = (params: JsonObject, context: MethodContext) => Effect.Effect<JsonObject, RpcError>

/**
 * How long a client may use a list before it requests the list again, in milliseconds. A shared cache in front of the
 * HTTP API may use a response for as long (`sharedMaxAgeSeconds`).
 */
export const listTtlMs = 30_000
/** Like `listTtlMs`, for results that change only when the program changes. */
const staticTtlMs = 3_600_000

const makePrivateHints = (ttlMs: number): JsonObject => ({ ttlMs, cacheScope: "private" })
const publicHints: JsonObject = { ttlMs: staticTtlMs, cacheScope: "public" }

const instructions =
  "The prompts of one workspace. A prompt's arguments are the slots that its text leaves open; all of them are required."

const capabilities: JsonObject = { prompts: { listChanged: true }, tools: {} }

const withCacheHints = (mode: ProtocolMode, result: JsonObject, hints: JsonObject): JsonObject =>
  completeResult(mode, mode === "stateless" ? { ...result, ...hints } : result)

const readOptionalText = (params: JsonObject, name: string): string | undefined | RpcError => {
  const value = params[name]
  return value === undefined || typeof value === "string"
    ? value
    : makeInvalidParams(`${name} must be a string`)
}

const readText = (params: JsonObject, name: string): string | RpcError =>
  readOptionalText(params, name) ?? makeInvalidParams(`${name} is missing`)

const findArgumentsTypeError = (value: unknown): RpcError | undefined => {
  if (!isJsonObject(value)) return makeInvalidParams("arguments must be an object")
  for (const name of Object.keys(value))
    if (typeof value[name] !== "string") return makeInvalidParams(`Argument must be a string: ${name}`)
  return undefined
}

const maxListedNames = 5

const listNames = (names: ReadonlyArray<string>): string => {
  const listed = names.slice(0, maxListedNames).join(", ")
  return names.length > maxListedNames ? `${listed} and ${names.length - maxListedNames} more` : listed
}

const findSlotMismatch = (
  slots: ReadonlyArray<string>,
  values: Readonly<Record<string, string>>
): RpcError | undefined => {
  const missing = slots.filter((slot) => !Object.hasOwn(values, slot))
  if (missing.length > 0) return makeInvalidParams(`Missing argument: ${listNames(missing)}`)
  const names = Object.keys(values)
  // Every slot has a value, so an additional value belongs to no slot.
  if (names.length === slots.length) return undefined
  const known = new Set(slots)
  return makeInvalidParams(`Unknown argument: ${listNames(names.filter((name) => !known.has(name)))}`)
}

/**
 * Reads a prompt and fills its slots with the arguments. Fails if an argument is missing or unknown, or if the result
 * is too large.
 */
const getMessage = (
  catalog: PromptCatalog,
  params: JsonObject
): Effect.Effect<{ readonly role: "user" | "assistant"; readonly text: string }, RpcError> => {
  const name = readText(params, "name")
  if (typeof name !== "string") return Effect.fail(name)
  const { arguments: values = {} } = params
  const problem = findArgumentsTypeError(values)
  if (problem !== undefined) return Effect.fail(problem)
  return Effect.flatMap(catalog.get(name), ({ prompt_type, content, slots }) => {
    const texts = values as Readonly<Record<string, string>>
    const problem = findSlotMismatch(slots, texts)
    if (problem !== undefined) return Effect.fail(problem)
    const text = slots.length === 0 ? content : fillSlots(content, texts)
    if (text === undefined) return Effect.fail(filledTooLarge)
    // The protocol has only the roles `user` and `assistant`.
    return Effect.succeed({ role: prompt_type === "assistant" ? "assistant" : "user", text })
  })
}

const toPrompt = ({ name, title, description, slots }: ListedPrompt): JsonObject => ({
  name,
  title,
  ...(description === "" ? {} : { description }),
  arguments: slots.map((slot) => ({ name: slot, required: true }))
})

const listPage = (catalog: PromptCatalog, params: JsonObject): Effect.Effect<JsonObject, RpcError> => {
  const cursor = readOptionalText(params, "cursor")
  if (typeof cursor === "object") return Effect.fail(cursor)
  return Effect.map(catalog.list(cursor), ({ prompts, nextCursor }) => ({
    prompts: prompts.map(toPrompt),
    ...(nextCursor === undefined ? {} : { nextCursor })
  }))
}

/**
 * Returns a value that `JSON.stringify` writes as a string: the JSON of `content`. The string is created only when
 * `JSON.stringify` runs, and takes no memory until then.
 */
const toJsonText = (content: JsonObject) => ({ toJSON: (): string => JSON.stringify(content) })

const callTool: Method = (params, { mode, catalog }) => {
  const name = readText(params, "name")
  if (typeof name !== "string") return Effect.fail(name)
  const tool = tools.find(({ definition }) => definition.name === name)
  if (tool === undefined)
    return Effect.fail(makeInvalidParams(`Unknown tool: ${name}`, { code: "NOT_FOUND" }))
  const { arguments: input = {} } = params
  if (!isJsonObject(input)) return Effect.fail(makeInvalidParams("arguments must be an object"))
  const output: Effect.Effect<JsonObject, RpcError> =
    tool.read === "list" ? listPage(catalog, input) : getMessage(catalog, input)
  return output.pipe(
    Effect.map((structuredContent) => ({
      content: [{ type: "text", text: toJsonText(structuredContent) }],
      structuredContent
    })),
    // An error in the input or the prompt becomes a result, so that the model that calls the tool can read the error.
    Effect.catch((error) => (error.status === 200 ? Effect.succeed(toToolError(error)) : Effect.fail(error))),
    Effect.map((result) => completeResult(mode, result))
  )
}

const commonMethods: Readonly<Record<string, Method>> = {
  "prompts/list": (params, { mode, catalog }) =>
    Effect.map(listPage(catalog, params), (page) => withCacheHints(mode, page, makePrivateHints(listTtlMs))),
  "prompts/get": (params, { mode, catalog }) =>
    Effect.map(getMessage(catalog, params), ({ role, text }) =>
      completeResult(mode, { messages: [{ role, content: { type: "text", text } }] })
    ),
  "tools/list": (_, { mode }) =>
    Effect.succeed(withCacheHints(mode, { tools: tools.map(({ definition }) => definition) }, publicHints)),
  "tools/call": callTool
}

const methodsByMode: Readonly<Record<ProtocolMode, ReadonlyMap<string, Method>>> = {
  stateless: new Map(
    Object.entries({
      ...commonMethods,
      "server/discover": (_, { mode }) =>
        Effect.succeed(
          withCacheHints(
            mode,
            {
              supportedVersions,
              capabilities,
              instructions
            },
            publicHints
          )
        )
    } satisfies Record<string, Method>)
  ),
  initialized: new Map(
    Object.entries({
      ...commonMethods,
      initialize: (params) => {
        const requested = readText(params, "protocolVersion")
        return typeof requested !== "string"
          ? Effect.fail(requested)
          : Effect.succeed({
              protocolVersion: isInitializedVersion(requested) ? requested : initializedVersions[0],
              capabilities,
              serverInfo,
              instructions
            })
      },
      ping: () => Effect.succeed({})
    } satisfies Record<string, Method>)
  )
}

/** Returns true if a request opens a stream of notifications instead of getting a result. */
export const isListen = ({ method }: RpcRequest, mode: ProtocolMode): boolean =>
  mode === "stateless" && method === "subscriptions/listen"

export const runMethod = (
  { method, params }: RpcRequest,
  context: MethodContext
): Effect.Effect<JsonObject, RpcError> => {
  const run = methodsByMode[context.mode].get(method)
  return run === undefined ? Effect.fail(makeUnknownMethod(method, context.mode)) : run(params, context)
}

/** The HTTP status of an unknown method is 404 since protocol version 2026-07-28, and 200 in earlier versions. */
const makeUnknownMethod = (method: string, mode: ProtocolMode): RpcError => {
  const error = makeProtocolError(rpcCodes.methodNotFound, `Method not found: ${method}`)
  return mode === "stateless" ? error : { ...error, status: 200 }
}
