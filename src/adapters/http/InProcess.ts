import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Schema from "effect/Schema"
import type { Caller } from "../../application/Admission.ts"
import { Prompts } from "../../application/Prompts.ts"
import { Unavailable } from "../../application/Unavailable.ts"
import { toPlainNumbers } from "../../domain/Json.ts"
import { InvalidParameter, type PageMeta } from "../../domain/Page.ts"
import type { Prompt, PromptSummary, PromptType, ResolvedPrompt, WorkspaceId } from "../../domain/Prompt.ts"
import { parseUuid } from "../../domain/Uuid.ts"
import type { Version, VersionSummary } from "../../domain/Version.ts"
import { ListQuery, PageQuery } from "./Api.ts"
import { type ApiError, errorAnswer, InternalError } from "./Errors.ts"
import { paged, single } from "./Handlers.ts"
import { parameterReader } from "./Query.ts"

/** A read that failed, with the code and the message that HTTP answers with (SPEC.md section 7). */
export class PromptApiError extends Error {
  override readonly name = "PromptApiError"
  readonly code: string
  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

/** A caller whom the host has authenticated: the workspace to read in, and its tier: `free`, `solo` or `team`. */
export interface HostCaller {
  readonly workspaceId: string
  readonly tier: string
}

export interface PageParameters {
  /** From 1; 1 unless given. */
  readonly page?: number | undefined
  /** From 1; 20 unless given, more than 100 is 100. */
  readonly per_page?: number | undefined
}

export interface ListParameters extends PageParameters {
  readonly folder_id?: string | undefined
  /** A tag's exact name. */
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
 * The reads of SPEC.md section 4 in process. They resolve to the envelope that HTTP answers with and reject with
 * `PromptApiError`. No gate and no limit applies, for the host has let the caller in; Free's 7 days do.
 */
export interface InProcessPrompts {
  readonly list: (caller: HostCaller, parameters?: ListParameters) => Promise<Paged<PromptSummary>>
  readonly get: (caller: HostCaller, id: string) => Promise<Single<Prompt>>
  readonly getResolved: (caller: HostCaller, id: string) => Promise<Single<ResolvedPrompt>>
  readonly versions: {
    readonly list: (caller: HostCaller, id: string, page?: PageParameters) => Promise<Paged<VersionSummary>>
    /**
     * Resolves to a version whose `metadata` holds JavaScript numbers. A number that JavaScript cannot hold exactly, such
     * as 1234567890123456789, is the nearest one; `JSON.stringify` of the result, or of any object or array in it that
     * holds such a number, still writes the number exactly.
     */
    readonly get: (caller: HostCaller, id: string, version: number) => Promise<Single<Version>>
  }
}

/** Parameters as a query writes them, so that one schema holds for both. */
const written = (parameters: object): Effect.Effect<Record<string, string>, InvalidParameter> => {
  if (typeof parameters !== "object" || parameters === null)
    return Effect.fail(InvalidParameter("parameters must be an object"))
  const query: Record<string, string> = Object.create(null)
  for (const [name, value] of Object.entries(parameters)) {
    if (value === undefined) continue
    if (["object", "function", "symbol"].includes(typeof value) && value !== null)
      return Effect.fail(InvalidParameter(`${name} must be a string or a number`))
    query[name] = String(value)
  }
  return Effect.succeed(query)
}

const readerOf = <A>(schema: Schema.Decoder<A>) => {
  const read = parameterReader(schema)
  return (parameters: object) =>
    Effect.flatMap(written(parameters), (query) => Effect.fromResult(read(query)))
}
const readList = readerOf(ListQuery)
const readPage = readerOf(PageQuery)

const callerOf = (caller: HostCaller): Effect.Effect<Caller, InvalidParameter> => {
  // Hosts in plain JavaScript pass anything.
  const { workspaceId, tier } = caller ?? {}
  const id = typeof workspaceId === "string" ? parseUuid(workspaceId) : undefined
  return id === undefined
    ? Effect.fail(InvalidParameter("workspaceId must be a UUID"))
    : Effect.succeed({ workspaceId: id as WorkspaceId, tier })
}

const readId = (id: string): Effect.Effect<string, InvalidParameter> =>
  typeof id === "string" ? Effect.succeed(id) : Effect.fail(InvalidParameter("id must be a string"))

const readNumber = (version: number): Effect.Effect<string, InvalidParameter> =>
  ["number", "string"].includes(typeof version)
    ? Effect.succeed(String(version))
    : Effect.fail(InvalidParameter("version must be a number"))

const thrown = (error: ApiError): PromptApiError => {
  const { code, message } = errorAnswer(error)
  return new PromptApiError(code, message)
}

/** Makes the in-process reads over the use cases. */
export const makeInProcess: Effect.Effect<InProcessPrompts, never, Prompts> = Effect.gen(function* () {
  const prompts = yield* Prompts
  const run = Effect.runPromiseExitWith(yield* Effect.context<never>())

  /** Runs a read, which looks at its arguments only then: a wrong argument rejects. */
  const promise = async <A, E extends ApiError>(read: Effect.Effect<A, E>): Promise<A> => {
    const exit = await run(
      read.pipe(
        Effect.mapError(thrown),
        Effect.catchDefect((defect) =>
          Effect.andThen(Effect.logError("A read failed", defect), Effect.fail(thrown(InternalError)))
        )
      )
    )
    if (Exit.isSuccess(exit)) return exit.value
    // What is interrupted is so because the API closes.
    throw Cause.hasInterruptsOnly(exit.cause) ? thrown(Unavailable) : Cause.squash(exit.cause)
  }

  return {
    list: (caller, parameters = {}) =>
      promise(
        Effect.gen(function* () {
          const who = yield* callerOf(caller)
          const query = yield* readList(parameters)
          return yield* paged(query, (page) => prompts.list(who, query, page))
        })
      ),
    get: (caller, id) =>
      promise(
        Effect.gen(function* () {
          const who = yield* callerOf(caller)
          return single(yield* prompts.get(who, yield* readId(id)))
        })
      ),
    getResolved: (caller, id) =>
      promise(
        Effect.gen(function* () {
          const who = yield* callerOf(caller)
          return single(yield* prompts.getResolved(who, yield* readId(id)))
        })
      ),
    versions: {
      list: (caller, id, parameters = {}) =>
        promise(
          Effect.gen(function* () {
            const who = yield* callerOf(caller)
            const promptId = yield* readId(id)
            const query = yield* readPage(parameters)
            return yield* paged(query, (page) => prompts.listVersions(who, promptId, page))
          })
        ),
      get: (caller, id, version) =>
        promise(
          Effect.gen(function* () {
            const who = yield* callerOf(caller)
            const promptId = yield* readId(id)
            return toPlainNumbers(
              single(yield* prompts.getVersion(who, promptId, yield* readNumber(version)))
            )
          })
        )
    }
  }
})
