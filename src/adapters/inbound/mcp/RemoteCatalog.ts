import * as Effect from "effect/Effect"
import { isJsonObject } from "../../../domain/Json.ts"
import type { PromptId, PromptType } from "../../../domain/Prompt.ts"
import { PromptNames } from "../../../domain/PromptNames.ts"
import { makeUnknownPrompt, tooManySlots } from "./Errors.ts"
import { type RpcError, rpcCodes } from "./JsonRpc.ts"
import {
  findOpenSlots,
  type ListedPage,
  makeCursor,
  type PromptCatalog,
  type PromptContent,
  readPageAt
} from "./PromptCatalog.ts"

/** The number of prompts on a page of `prompts/list`: each of them costs a request. */
const pageSize = 20
const maxConcurrentReads = 4
/** The largest page of the HTTP API. */
const per_page = 100

/** A summary of a prompt as the client returns it. */
interface RemoteSummary {
  readonly id: string
  readonly title: string
  readonly description: string
}

/** The calls of the TypeScript client that the catalog needs. `PromptClient` has them as its property `prompts`. */
export interface RemotePrompts {
  readonly list: (params: { readonly page: number; readonly per_page: number }) => PromiseLike<{
    readonly data: ReadonlyArray<RemoteSummary>
    readonly meta: { readonly total: number }
  }>
  readonly getResolved: (
    id: string
  ) => Promise<{ readonly data: { readonly prompt_type: string; readonly resolved_content: string } }>
}

/** Converts an error of the client. Only a response of the API has a status and a code. */
const toRemoteError = (error: unknown): RpcError => {
  const { status, code, message, retryAfter } = error as {
    readonly status?: unknown
    readonly code?: unknown
    readonly message?: unknown
    readonly retryAfter?: unknown
  }
  const text = typeof message === "string" ? message : "The service did not respond"
  return typeof status === "number" && typeof code === "string"
    ? {
        code: status >= 400 && status < 500 ? status : rpcCodes.internalError,
        message: text,
        data: { code, ...(retryAfter === undefined ? {} : { retryAfter }) },
        status: code === "NOT_FOUND" || code === "RESOLVED_TOO_LARGE" ? 200 : status
      }
    : { code: rpcCodes.internalError, message: text, data: { code: "SERVICE_UNAVAILABLE" }, status: 503 }
}

const isErrorWithCode = ({ data }: RpcError, code: string): boolean =>
  isJsonObject(data) && data.code === code

const call = <A>(send: () => PromiseLike<A>): Effect.Effect<A, RpcError> =>
  Effect.tryPromise({ try: async () => await send(), catch: toRemoteError })

/**
 * Makes the catalog of the workspace that a client of the HTTP API reads. The catalog caches nothing: the client's
 * cache bounds the age of its results and saves requests.
 */
export const makeRemoteCatalog = (prompts: RemotePrompts): PromptCatalog => {
  const readSummaries = Effect.gen(function* () {
    const summaries = new Map<string, RemoteSummary>()
    for (let page = 1; ; page++) {
      const { data, meta } = yield* call(() => prompts.list({ page, per_page }))
      for (const summary of data) summaries.set(summary.id, summary)
      if (data.length === 0 || page * per_page >= meta.total) break
    }
    const names = new PromptNames()
    for (const { id, title } of summaries.values()) names.add({ id: id as PromptId, title })
    return { summaries: [...summaries.values()], names }
  })

  const readContent = (id: string): Effect.Effect<PromptContent, RpcError> =>
    Effect.flatMap(
      call(() => prompts.getResolved(id)),
      ({ data: { prompt_type, resolved_content: content } }) => {
        const slots = findOpenSlots(content)
        return slots === undefined
          ? Effect.fail(tooManySlots)
          : Effect.succeed({ prompt_type: prompt_type as PromptType, content, slots })
      }
    )

  /** Returns the slots of a prompt: none if it is too large, and `undefined` if it was deleted meanwhile. */
  const readSlots = (id: string): Effect.Effect<ReadonlyArray<string> | undefined, RpcError> =>
    Effect.catch(
      Effect.map(readContent(id), ({ slots }) => slots),
      (error): Effect.Effect<ReadonlyArray<string> | undefined, RpcError> => {
        if (isErrorWithCode(error, "NOT_FOUND")) return Effect.undefined
        return isErrorWithCode(error, "RESOLVED_TOO_LARGE") ? Effect.succeed([]) : Effect.fail(error)
      }
    )

  const readPage = Effect.fnUntraced(function* (page: number) {
    const { summaries, names } = yield* readSummaries
    const listed = yield* Effect.forEach(
      summaries.slice((page - 1) * pageSize, page * pageSize),
      (summary) => Effect.map(readSlots(summary.id), (slots) => ({ ...summary, slots })),
      { concurrency: maxConcurrentReads }
    )
    return {
      prompts: listed.flatMap(({ id, title, description, slots }) =>
        slots === undefined
          ? []
          : [{ name: names.getName({ id: id as PromptId, title }), title, description, slots }]
      ),
      nextCursor: page * pageSize < summaries.length ? makeCursor(page + 1) : undefined
    } satisfies ListedPage
  })

  return {
    list: (cursor) => readPageAt(cursor, readPage),
    get: (name) =>
      Effect.flatMap(readSummaries, ({ names }) => {
        const id = names.findId(name)
        if (id === undefined) return Effect.fail(makeUnknownPrompt(name))
        return Effect.mapError(readContent(id), (error) =>
          isErrorWithCode(error, "NOT_FOUND") ? makeUnknownPrompt(name) : error
        )
      })
  }
}
