import type { BundledPrompt } from "./Bundle.ts"
import type { PromptResponse, PromptType, Provenance, ResolvedPrompt, Single, Source } from "./Resources.ts"

/** The properties of a result besides its envelope. */
interface ResultDetails extends Provenance<Source> {
  readonly response: PromptResponse | undefined
}

/** Adds the details to an envelope as properties that are not enumerable. */
export const toResult = <Result>(envelope: object, details: ResultDetails): Result =>
  Object.defineProperties(
    envelope,
    Object.fromEntries(Object.entries(details).map(([name, value]) => [name, { value }]))
  ) as Result

/** Makes the result of a text that does not come from the service now. Absent fields get fixed values. */
export const toSubstitute = (
  source: "bundled" | "fallback",
  prompt: Partial<BundledPrompt> & Pick<BundledPrompt, "id" | "content">
): Single<ResolvedPrompt, Source> => {
  const { id, title = "", target_model = "", content: resolved_content, fragment_count = 0, version } = prompt
  const prompt_type = (prompt.prompt_type ?? "system") as PromptType
  return toResult(
    { data: { id, title, prompt_type, target_model, resolved_content, fragment_count } },
    { source, version, etag: undefined, age: undefined, requestId: undefined, response: undefined }
  )
}

/** A result with the response that it comes from. */
export type WithResponse<Result, Response = PromptResponse> = Result & {
  /** The response that confirmed the result. */
  readonly response: Response
}

/** A call. Await it for its result. */
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
