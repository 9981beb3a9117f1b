import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Schema from "effect/Schema"
import type { Caller } from "../../../application/Admission.ts"
import { toError } from "../../../application/InternalError.ts"
import { Lifecycle } from "../../../application/Lifecycle.ts"
import { Prompts, ReadGate, withRequestDeadline } from "../../../application/Prompts.ts"
import { Unavailable } from "../../../application/ports/Unavailable.ts"
import { InvalidParameter, type PageMeta } from "../../../domain/Page.ts"
import {
  type Prompt,
  type PromptSummary,
  type PromptType,
  parseUuid,
  type ResolvedPrompt
} from "../../../domain/Prompt.ts"
import type { Version, VersionSummary } from "../../../domain/Version.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { readPageEnvelope } from "../contract/Envelope.ts"
import { type ApiError, describeError } from "../contract/Errors.ts"
import { ListQuery, makeParameterDecoder, PageQuery } from "../contract/Parameters.ts"

/** The error of a failed read, with the code and message that the HTTP API reports for this error (specification 7). */
export class PromptApiError extends Error {
  override readonly name = "PromptApiError"
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** A caller that the host has authenticated: the workspace to read, and its tier (`free`, `solo` or `team`). */
export interface HostCaller {
  readonly workspaceId: string
  readonly tier: string
}

export interface PageParameters {
  /** The page number, starting at 1. The default is 1. */
  readonly page?: number | undefined
  /** The number of items per page, at least 1. The default is 20. A number over 100 becomes 100. */
  readonly per_page?: number | undefined
}

export interface ListParameters extends PageParameters {
  readonly folder_id?: string | undefined
  /** The exact name of a tag. */
  readonly tag?: string | undefined
  readonly type?: PromptType | undefined
}

export interface Single<A> {
  readonly data: A
}

export interface Paged<A> {
  readonly data: ReadonlyArray<A>
  readonly meta: PageMeta
}

/**
 * Reads prompts in the process of the host (specification 4). `id` is the id or the name of a prompt. Every read
 * resolves to the envelope that the HTTP API returns, or rejects with `PromptApiError`. The host is responsible for
 * access and rate limits. The tier has only one effect here: a caller on a tier other than `solo` and `team` sees only
 * the versions of the last 7 days.
 */
export interface InProcessPrompts {
  readonly list: (caller: HostCaller, parameters?: ListParameters) => Promise<Paged<PromptSummary>>
  readonly get: (caller: HostCaller, id: string) => Promise<Single<Prompt>>
  readonly getResolved: (caller: HostCaller, id: string) => Promise<Single<ResolvedPrompt>>
  readonly versions: {
    readonly list: (caller: HostCaller, id: string, page?: PageParameters) => Promise<Paged<VersionSummary>>
    readonly get: (caller: HostCaller, id: string, version: number) => Promise<Single<Version>>
  }
}

/** Converts parameters to the strings of a URL query, which the schemas of the HTTP API decode. */
const toQueryStrings = (parameters: object): Result.Result<Record<string, string>, InvalidParameter> => {
  if (typeof parameters !== "object" || parameters === null)
    return Result.fail(InvalidParameter("parameters must be an object"))
  const query: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue
    if (["object", "function", "symbol"].includes(typeof value))
      return Result.fail(InvalidParameter(`${name} must be a string or a number`))
    query[name] = String(value)
  }
  return Result.succeed(query)
}

const makeReader = <A>(schema: Schema.Decoder<A>) => {
  const decode = makeParameterDecoder(schema)
  return (parameters: object) => Effect.fromResult(Result.flatMap(toQueryStrings(parameters), decode))
}
const readListParameters = makeReader(ListQuery)
const readPageParameters = makeReader(PageQuery)

const requireValue = <A>(value: A | undefined, rule: string): Effect.Effect<A, InvalidParameter> =>
  value === undefined ? Effect.fail(InvalidParameter(rule)) : Effect.succeed(value)

// The parsers check the types of values, because a host in plain JavaScript can pass any value.

const parseCaller = (caller: HostCaller) => {
  const { workspaceId, tier } = caller ?? {}
  const id = typeof workspaceId === "string" ? parseUuid(workspaceId) : undefined
  return Effect.map(requireValue(id, "workspaceId must be a UUID"), (id) => ({
    workspaceId: id as WorkspaceId,
    tier
  }))
}

const parseId = (id: string) => requireValue(typeof id === "string" ? id : undefined, "id must be a string")

const parseVersion = (version: number) =>
  requireValue(
    ["number", "string"].includes(typeof version) ? String(version) : undefined,
    "version must be a number"
  )

export const makeInProcessPrompts: Effect.Effect<InProcessPrompts, never, Prompts | ReadGate | Lifecycle> =
  Effect.gen(function* () {
    const prompts = yield* Prompts
    const gate = yield* ReadGate
    const lifecycle = yield* Lifecycle
    const run = Effect.runPromiseWith(yield* Effect.context<never>())

    /** Runs a read for a caller and returns a promise of the result. The promise rejects if an argument is invalid. */
    const runRead = async <A>(
      caller: HostCaller,
      read: (caller: Caller) => Generator<Effect.Effect<unknown, ApiError>, A>
    ): Promise<A> => {
      const result = await run(
        Effect.suspend(() => parseCaller(caller)).pipe(
          Effect.flatMap((caller) =>
            lifecycle.phase() === "starting"
              ? Effect.fail(Unavailable)
              : gate.withPermit(
                  caller.workspaceId,
                  Effect.gen(() => read(caller))
                )
          ),
          withRequestDeadline,
          Effect.catchCause((cause) => Effect.flip(toError(cause))),
          Effect.result
        )
      )
      if (Result.isSuccess(result)) return result.success
      const { code, message } = describeError(result.failure)
      throw new PromptApiError(code, message)
    }

    return {
      list: (caller, parameters = {}) =>
        runRead(caller, function* (caller) {
          const query = yield* readListParameters(parameters)
          return yield* readPageEnvelope(query, (page) => prompts.list(caller, query, page))
        }),
      get: (caller, id) =>
        runRead(caller, function* (caller) {
          return { data: yield* prompts.get(caller, yield* parseId(id)) }
        }),
      getResolved: (caller, id) =>
        runRead(caller, function* (caller) {
          return { data: yield* prompts.getResolved(caller, yield* parseId(id)) }
        }),
      versions: {
        list: (caller, id, parameters = {}) =>
          runRead(caller, function* (caller) {
            const promptId = yield* parseId(id)
            const query = yield* readPageParameters(parameters)
            return yield* readPageEnvelope(query, (page) => prompts.listVersions(caller, promptId, page))
          }),
        get: (caller, id, version) =>
          runRead(caller, function* (caller) {
            const promptId = yield* parseId(id)
            return { data: yield* prompts.getVersion(caller, promptId, yield* parseVersion(version)) }
          })
      }
    }
  })
