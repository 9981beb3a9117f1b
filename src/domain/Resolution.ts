import * as Result from "effect/Result"
import { isExactNumber } from "./Json.ts"
import type { PromptId, PromptType, ResolvedPrompt } from "./Prompt.ts"

/** What one prompt is resolved from: the prompt's own content, then its fragments in the order of `position`. */
export interface ResolutionSource {
  readonly id: PromptId
  readonly title: string
  readonly prompt_type: PromptType
  readonly target_model: string
  readonly current_content: string
  readonly fragments: ReadonlyArray<FragmentUse>
}

/** One row of the prompt-to-fragment join. `variable_overrides` is free-form JSON: what is no binding is ignored. */
export interface FragmentUse {
  readonly content: string
  readonly variable_overrides: unknown
}

/** The most that resolved content may measure, in bytes of UTF-8 (DESIGN.md section 5). */
export const maxResolvedBytes = 8 * 1024 * 1024

/** The most that the unresolved contents of one prompt's fragments may measure together, in bytes of UTF-8. */
export const maxSourceBytes = 32 * 1024 * 1024

/** A prompt whose resolved content would be larger than the service will build. */
export interface ResolvedTooLarge {
  readonly _tag: "ResolvedTooLarge"
  readonly id: PromptId
}
export const ResolvedTooLarge = (id: PromptId): ResolvedTooLarge => ({ _tag: "ResolvedTooLarge", id })

/**
 * A slot, `{{name}}`: 1 to 256 UTF-16 code units other than braces, not all blank. Bounded, so that it matches in
 * linear time.
 */
const slot = /\{\{([^{}]{1,256})\}\}/g

const binding = (overrides: object, name: string): string | undefined => {
  if (name === "" || !Object.hasOwn(overrides, name)) return undefined
  const value: unknown = overrides[name as keyof typeof overrides]
  switch (typeof value) {
    case "string":
      return value
    case "number":
    case "boolean":
      return String(value)
    default:
      return isExactNumber(value) ? value.rawJSON : undefined
  }
}

const separator = "\n\n"

const isMap = (value: unknown): value is object =>
  typeof value === "object" && value !== null && !Array.isArray(value)

/**
 * Appends `content` to `head`, its slots filled from `overrides` in one pass: what a binding brings in is not
 * read again, and a slot without a binding stays as it is. `undefined` as soon as the whole is over `limit`
 * code units.
 */
const append = (head: string, content: string, overrides: unknown, limit: number): string | undefined => {
  if (!isMap(overrides) || !content.includes("{{")) {
    return head.length + content.length > limit ? undefined : head + content
  }
  let out = head
  let copied = 0
  for (const match of content.matchAll(slot)) {
    const value = binding(overrides, match[1]!.trim())
    if (value === undefined) continue
    out += content.slice(copied, match.index) + value
    copied = match.index + match[0].length
    if (out.length > limit) return undefined
  }
  out += content.slice(copied)
  return out.length > limit ? undefined : out
}

const fits = (text: string): boolean =>
  text.length * 3 <= maxResolvedBytes || new TextEncoder().encode(text).length <= maxResolvedBytes

/**
 * Resolves a prompt (SPEC.md section 2.8): its content, then for each fragment two newlines and the fragment's
 * content with its slots filled. The prompt's own slots are the caller's to fill and stay. Fails when the result
 * would measure more than `maxResolvedBytes`; the work done until then is bounded by that too.
 */
export const resolve = (source: ResolutionSource): Result.Result<ResolvedPrompt, ResolvedTooLarge> => {
  let content: string | undefined = source.current_content
  for (const fragment of source.fragments) {
    content = append(content + separator, fragment.content, fragment.variable_overrides, maxResolvedBytes)
    if (content === undefined) return Result.fail(ResolvedTooLarge(source.id))
  }
  if (!fits(content)) return Result.fail(ResolvedTooLarge(source.id))
  return Result.succeed({
    id: source.id,
    title: source.title,
    prompt_type: source.prompt_type,
    target_model: source.target_model,
    resolved_content: content,
    fragment_count: source.fragments.length
  })
}
