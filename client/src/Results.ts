import type { CacheResult } from "./Cache.ts"
import { type ResolvedPrompt, type Substitute, toResolvedPrompt } from "./ResolvedPrompt.ts"
import type { ListParams, Page, PromptResponse, Provenance, Single, Source } from "./Resources.ts"
import { toQuery } from "./Selection.ts"
import { getElapsed } from "./transport/Limits.ts"

/** The properties of a result besides its envelope. */
interface ResultDetails extends Partial<Provenance<Source>> {
  readonly response?: PromptResponse
}

/** Adds the details to an envelope as properties that are not enumerable. */
const toResult = <Result>(envelope: object, details: ResultDetails): Result => {
  for (const [name, value] of Object.entries(details)) Object.defineProperty(envelope, name, { value })
  return envelope as Result
}

/** Makes a result from a response of the service. `name` is the name or id of the prompt. */
export const toServiceResult = <Result>(
  { text, info, source = info.source }: CacheResult,
  name: string | undefined
): Result => {
  const envelope = JSON.parse(text)
  const { etag, requestId, status, headers } = info
  return toResult(envelope, {
    name,
    source,
    version: info.version ?? envelope.data.current_version ?? envelope.data.version_number,
    etag,
    age: Math.round(getElapsed(info.confirmedAt)),
    requestId,
    response: { status, headers }
  })
}

/** Makes the result of a bundled text or a fallback. Absent fields get the values that `toResolvedPrompt` sets. */
export const toSubstitute = (
  source: "bundled" | "fallback",
  name: string,
  prompt: Substitute
): Single<ResolvedPrompt, Source> =>
  toResult({ data: toResolvedPrompt({ id: name, ...prompt }) }, { name, source, version: prompt.version })

/**
 * Returns attributes for a trace of a call to a model: the prompt that the call used, and the source of the prompt's
 * text. The names follow OpenTelemetry's conventions for generative AI. An attribute whose value is not known is
 * undefined.
 *
 * @example
 * ```ts
 * import { PromptClient, traceAttributes } from "@prompt-retrieval/client"
 *
 * const result = await new PromptClient().prompts.getResolved("support-agent")
 * const attributes: Record<string, string | number | undefined> = traceAttributes(result)
 * ```
 */
export const traceAttributes = (result: Single<Pick<ResolvedPrompt, "id" | "title">, Source>) => ({
  "gen_ai.prompt.name": result.name,
  "gen_ai.prompt.version": result.version?.toString(),
  // A fallback has the name in place of an id.
  "prompt_retrieval.prompt.id": result.source === "fallback" ? undefined : result.data.id,
  "prompt_retrieval.prompt.etag": result.etag,
  "prompt_retrieval.prompt.source": result.source,
  "prompt_retrieval.prompt.age_ms": result.age,
  "prompt_retrieval.prompt.request_id": result.requestId
})

/** A result with the response that confirmed the result. */
export type WithResponse<Result, Response = PromptResponse> = Result & { readonly response: Response }

/** A promise of a call's result, with methods that give access to the HTTP response. */
export interface Call<Result, Response = PromptResponse> extends Promise<Result> {
  /** Resolves to the response that confirmed the result. */
  asResponse(): Promise<Response>
  /** Resolves to the result with its `response`. */
  withResponse(): Promise<WithResponse<Result, Response>>
}

export const toCall = <Result, Response>(promise: Promise<Result>): Call<Result, Response> => {
  const call = promise as Promise<WithResponse<Result, Response>>
  return Object.assign(call, {
    asResponse: () => call.then(({ response }) => response),
    withResponse: () => call
  })
}

/**
 * A call that reads a list. To read one page, await the call. To read all items from that page on, iterate over the
 * call.
 *
 * Iteration requests one page at a time; each page is a separate call with its own timeout. If the list changes during
 * iteration, no item is returned twice, but the iteration can miss an item that moves to an earlier page.
 *
 * If a list has more pages than the key's rate limit per minute (100 by default), set a `timeout` of more than a minute,
 * such as 70,000. A call then waits for the next minute instead of rejecting with a `RateLimitedError`.
 */
export interface List<A> extends Call<Page<A>>, AsyncIterable<A> {}

/** Reads the first page of a list. Iterating over the result reads the other pages when they are needed. */
export const readList = <A>(
  readPage: (query: string) => Promise<Page<A>>,
  params: ListParams = {}
): List<A> => {
  // This function is async, so that the call rejects if a parameter is invalid.
  const read = async (params: ListParams) => readPage(toQuery(params))
  const firstPage = read(params)
  return Object.assign(toCall<Page<A>, PromptResponse>(firstPage), {
    async *[Symbol.asyncIterator]() {
      const seen = new Set<unknown>()
      for (let { data, meta } = await firstPage, page = params.page ?? 1; ; ) {
        for (const item of data) {
          const { id, version_number: identity = id } = item as { id?: string; version_number?: number }
          if (!seen.has(identity)) yield item
          seen.add(identity)
        }
        if (data.length === 0 || page * meta.per_page >= meta.total) return
        ;({ data, meta } = await read({ ...params, page: ++page }))
      }
    }
  })
}
