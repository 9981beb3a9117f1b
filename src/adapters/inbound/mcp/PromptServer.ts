import { INVALID_PARAMS, type McpServerFactory, Server } from "@modelcontextprotocol/server"
import * as Effect from "effect/Effect"
import * as Predicate from "effect/Predicate"
import type { Caller } from "../../../application/Admission.ts"
import { toError } from "../../../application/InternalError.ts"
import { programVersion } from "../../../application/ProgramVersion.ts"
import { countUnits, ReadGate } from "../../../application/Prompts.ts"
import { type CallError, makeInvalidParams, shorten, toProtocolError } from "./CallErrors.ts"
import { type JsonObject, makePromptCatalog, makeText } from "./PromptCatalog.ts"
import { tools } from "./Tools.ts"

const serverInfo = { name: "prompt-retrieval", title: "Prompts", version: programVersion }
const listHint = { ttlMs: 30_000, cacheScope: "private" } as const
const options = {
  capabilities: { prompts: {}, tools: {} },
  instructions: "The prompts of one workspace. All arguments of a prompt are required.",
  cacheHints: { "prompts/list": listHint, "tools/list": listHint }
}

/**
 * A schema that accepts all parameters. The methods check the parameters, because the MCP package's own errors about
 * parameters can be long.
 */
const anyParams = {
  "~standard": { version: 1, vendor: "none", validate: (value: unknown) => ({ value }) }
} as const

type Method = (caller: Caller, params: JsonObject) => Effect.Effect<JsonObject, CallError>

/**
 * Makes a factory of MCP servers. Each server responds to one request. `authInfo` has the caller and the id of the
 * request.
 */
export const makeServerFactory = Effect.gen(function* () {
  const { list, get } = yield* makePromptCatalog
  const gate = yield* ReadGate
  const run = Effect.runPromiseWith(yield* Effect.context<never>())

  const listAsText: Method = (caller, input) =>
    Effect.flatMap(list(caller, input), (page) =>
      gate.runStep(countUnits(page), () => makeText(JSON.stringify(page)))
    )

  const toolMethods: ReadonlyMap<unknown, Method> = new Map<string, Method>([
    ["list_prompts", listAsText],
    ["get_prompt", (caller, input) => Effect.map(get(caller, input), ({ content }) => content)]
  ])

  const callTool: Method = (caller, { name, arguments: input = {} }) => {
    const read = toolMethods.get(name)
    if (read === undefined) return Effect.fail(makeInvalidParams(`Unknown tool: ${shorten(String(name))}`))
    if (!Predicate.isObject(input)) return Effect.fail(makeInvalidParams("arguments must be an object"))
    return Effect.mapError(read(caller, input), toProtocolError).pipe(
      Effect.map((content) => ({ content: [content] })),
      // The model that called the tool can read the error and correct the input.
      Effect.catchIf(
        ({ code }) => code === INVALID_PARAMS,
        ({ message }) => Effect.succeed({ content: [makeText(message)], isError: true })
      )
    )
  }

  const methods: Readonly<Record<string, Method>> = {
    "prompts/list": list,
    "prompts/get": (caller, params) =>
      Effect.map(get(caller, params), (message) => ({ messages: [message] })),
    "tools/list": () => Effect.succeed({ tools }),
    "tools/call": callTool
  }

  return (({ authInfo }) => {
    const { caller, requestId } = (authInfo?.extra ?? {}) as { caller: Caller; requestId: string }
    const server = new Server(serverInfo, options)
    for (const [name, method] of Object.entries(methods))
      server.setRequestHandler(name, { params: anyParams }, (params, { mcpReq: { signal } }) => {
        // The MCP package encodes a returned result immediately, so a large result first waits for its turn.
        const result = method(caller, params as JsonObject).pipe(
          Effect.tap((result) => gate.runStep(countUnits(result), () => {})),
          Effect.catchCause((cause) => Effect.flip(toError(cause, requestId))),
          Effect.mapError(toProtocolError)
        )
        return run(result, { signal })
      })
    return server
  }) satisfies McpServerFactory
})
