import * as Predicate from "effect/Predicate"
import * as Result from "effect/Result"
import { type PromptId, pickRepeatedFields, type RepeatedFields, type ResolvedPrompt } from "./Prompt.ts"
import { sizes } from "./Sizes.ts"

/** The contents of a prompt and of its fragments. The fragments are ordered by `position`. */
export interface PromptContents extends RepeatedFields {
  readonly current_content: string
  readonly fragments: ReadonlyArray<SourceFragment>
  /** The size of the contents and of the overrides as JSON, in bytes; absent if the store does not count the size. */
  readonly bytes?: number
}

/** The input for resolving a prompt, as a `PromptRepo` returns it. */
export interface ResolutionSource extends PromptContents {
  /** The version number of `current_content`, from the same snapshot. */
  readonly current_version: number
}

/** A fragment of a prompt. `variable_overrides` is free-form JSON; values that cannot fill a slot are ignored. */
export interface SourceFragment {
  readonly content: string
  readonly variable_overrides: unknown
}

/** The contents and overrides exceed `sizes.sourceBytes`, or the resolved content exceeds `sizes.contentBytes`. */
export interface ResolvedTooLarge {
  readonly _tag: "ResolvedTooLarge"
  readonly id: PromptId
}
export const ResolvedTooLarge = (id: PromptId): ResolvedTooLarge => ({ _tag: "ResolvedTooLarge", id })

/** The contents of several prompts are too large for one response. */
export const PageTooLarge = { _tag: "PageTooLarge" } as const
export type PageTooLarge = typeof PageTooLarge

/**
 * Matches a slot, `{{name}}`. The name has 1 to 256 UTF-16 code units other than braces; a blank name also matches. The
 * maximum length keeps the time of matching linear.
 */
const slotPattern = /\{\{([^{}]{1,256})\}\}/g

/** Returns the name of a slot from the text between its braces, or `undefined` for blank text. */
const toSlotName = (inner: string): string | undefined => {
  const name = inner.trim()
  return name === "" ? undefined : name
}

/** Returns the distinct names of a text's slots, in the order of the text. Stops after `limit` + 1 names. */
export const findSlots = (content: string, limit = Number.POSITIVE_INFINITY): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const [, inner = ""] of content.matchAll(slotPattern)) {
    const name = toSlotName(inner)
    if (name !== undefined) names.add(name)
    if (names.size > limit) break
  }
  return names
}

/** Returns the text that fills a slot bound to this value, or `undefined` if the value cannot fill a slot. */
export const toSlotText = (value: unknown): string | undefined =>
  ["string", "number", "boolean"].includes(typeof value) ? String(value) : undefined

/**
 * Fills the slots of a text in one pass. A slot stays as it is if its name has no binding, or if the binding cannot
 * fill a slot. Returns `undefined` if the result would have more than `sizes.contentBytes` UTF-16 code units.
 */
const fill = (content: string, bindings: Readonly<Record<string, unknown>>): string | undefined => {
  const maxLength = sizes.contentBytes
  /** The growth of the result so far: the length of the inserted texts minus the length of their slots. */
  let growth = 0
  const filled = content.replace(slotPattern, (slot, inner: string, offset: number) => {
    const name = toSlotName(inner)
    const isBound = name !== undefined && Object.hasOwn(bindings, name)
    const text = (isBound ? toSlotText(bindings[name]) : undefined) ?? slot
    growth += text.length - slot.length
    // If the result is already too long, no more text is inserted, to save memory.
    return offset + slot.length + growth > maxLength ? "" : text
  })
  return content.length + growth > maxLength ? undefined : filled
}

/**
 * Fills each slot of a text with the value of its name, in one pass. Slots in inserted text are not filled. A slot whose
 * name has no value stays as it is. Returns `undefined` if the result would be larger than `sizes.contentBytes`.
 */
export const fillSlots = (content: string, values: Readonly<Record<string, string>>): string | undefined => {
  const filled = fill(content, values)
  return filled !== undefined && Buffer.byteLength(filled) <= sizes.contentBytes ? filled : undefined
}

const separator = "\n\n"

/** Returns a prompt's `bytes`. If `bytes` is undefined, counts the bytes of the contents without the overrides. */
export const countSourceBytes = ({ current_content, fragments, bytes }: PromptContents): number =>
  bytes ??
  fragments.reduce((sum, { content }) => sum + Buffer.byteLength(content), Buffer.byteLength(current_content))

const fillFragment = ({ content, variable_overrides: overrides }: SourceFragment): string | undefined =>
  content.includes("{{") && Predicate.isObject(overrides) ? fill(content, overrides) : content

/**
 * Resolves a prompt (specification 2.8). The resolved content is the content of the prompt and then, for each fragment,
 * two newlines and the content of the fragment with its slots filled. Slots in the prompt's own content, slots in
 * inserted text and slots without a binding stay unfilled. Fails with `ResolvedTooLarge` if the prompt exceeds a limit
 * in `sizes`.
 */
export const resolve = (source: PromptContents): Result.Result<ResolvedPrompt, ResolvedTooLarge> => {
  const { current_content, fragments } = source
  const tooLarge = Result.fail(ResolvedTooLarge(source.id))
  if (countSourceBytes(source) > sizes.sourceBytes) return tooLarge
  const parts = [current_content]
  let { length } = current_content
  for (const fragment of fragments) {
    const filled = fillFragment(fragment)
    length += separator.length + (filled?.length ?? 0)
    if (filled === undefined || length > sizes.contentBytes) return tooLarge
    parts.push(filled)
  }
  const resolved_content = parts.join(separator)
  return Buffer.byteLength(resolved_content) <= sizes.contentBytes
    ? Result.succeed({
        ...pickRepeatedFields(source),
        resolved_content,
        fragment_count: fragments.length
      })
    : tooLarge
}
