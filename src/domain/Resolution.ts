import * as Result from "effect/Result"
import { Bindings, JsonText, toSlotText } from "./Bindings.ts"
import { isJsonObject } from "./Json.ts"
import type { PromptId, PromptType, ResolvedPrompt } from "./Prompt.ts"

/** The input of a resolution: the content of a prompt and its fragments, ordered by `position`. */
export interface ResolutionSource {
  readonly id: PromptId
  readonly title: string
  readonly prompt_type: PromptType
  readonly target_model: string
  readonly current_content: string
  /** The version number of `current_content`, from the same snapshot. Absent if the store does not report it. */
  readonly current_version?: number | undefined
  readonly fragments: ReadonlyArray<SourceFragment>
}

/**
 * A fragment of a prompt. `variable_overrides` is free-form JSON, or its text as `JsonText`; values that cannot
 * fill a slot are ignored.
 */
export interface SourceFragment {
  readonly content: string
  readonly variable_overrides: unknown
}

/** The largest resolved content, in bytes of UTF-8. */
export const maxResolvedBytes = 8 * 1024 * 1024

/** The largest sum of the unresolved contents of one prompt's fragments, in bytes of UTF-8. */
export const maxFragmentBytes = 32 * 1024 * 1024

/** Returns the sum of the unresolved contents of a prompt's fragments, in bytes of UTF-8. */
export const countFragmentBytes = ({ fragments }: ResolutionSource): number =>
  fragments.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0)

/** The resolved content of a prompt would be larger than `maxResolvedBytes`. */
export interface ResolvedTooLarge {
  readonly _tag: "ResolvedTooLarge"
  readonly id: PromptId
}
export const ResolvedTooLarge = (id: PromptId): ResolvedTooLarge => ({ _tag: "ResolvedTooLarge", id })

/**
 * Matches a slot, `{{name}}`: 1 to 256 UTF-16 code units other than braces, not all blank. The bound keeps matching
 * linear.
 */
const slotPattern = /\{\{([^{}]{1,256})\}\}/g
const maxSlotLength = 260

/** Returns the name of a slot with this text between its braces. Blank text is no slot. */
const toSlotName = (inner: string): string | undefined => {
  const name = inner.trim()
  return name === "" ? undefined : name
}

const matchSlots = (content: string): Iterable<RegExpExecArray> => {
  // A failed resolution leaves `lastIndex` set, and `matchAll` starts there.
  slotPattern.lastIndex = 0
  return content.matchAll(slotPattern)
}

/**
 * Returns the names of the slots of a text, each once, in the order in which they first appear. Stops at the first
 * name that exceeds `limit` names.
 */
export const findSlots = (content: string, limit = Number.POSITIVE_INFINITY): ReadonlySet<string> => {
  const names = new Set<string>()
  for (const [, inner = ""] of matchSlots(content)) {
    const name = toSlotName(inner)
    if (name !== undefined) names.add(name)
    if (names.size > limit) break
  }
  return names
}

const fitsLimit = (text: string): boolean =>
  text.length * 3 <= maxResolvedBytes || new TextEncoder().encode(text).length <= maxResolvedBytes

/**
 * Fills the slots of a text in one pass: slots in inserted text are not filled, and a slot whose name has no value
 * stays. Returns `undefined` if the result would be larger than `maxResolvedBytes`.
 */
export const fillSlots = (content: string, values: Readonly<Record<string, string>>): string | undefined => {
  const lookUp = (inner: string): string | undefined => {
    const name = toSlotName(inner)
    return name !== undefined && Object.hasOwn(values, name) ? values[name] : undefined
  }
  let { length } = content
  for (const [slot, inner = ""] of matchSlots(content)) length += (lookUp(inner) ?? slot).length - slot.length
  if (length > maxResolvedBytes) return undefined
  const filled = content.replace(slotPattern, (slot: string, inner: string) => lookUp(inner) ?? slot)
  return fitsLimit(filled) ? filled : undefined
}

const separator = "\n\n"

/** Returns the text that fills the slot of this name, or `undefined` if the name has no binding. */
type Lookup = (name: string) => string | undefined

const makeLookup =
  (overrides: Readonly<Record<string, unknown>>): Lookup =>
  (name) =>
    Object.hasOwn(overrides, name) ? toSlotText(overrides[name]) : undefined

/** The cost of starting a fragment, in code units: even an empty fragment takes time. */
const fragmentUnits = 64

/**
 * Resolves a prompt (specification 2.8) step by step: its content, then for each fragment two newlines and the
 * fragment's content with its slots filled. The prompt's own slots stay, for the caller to fill. Slots are filled
 * in one pass: slots in inserted text are not filled, and a slot without a binding stays. Fails once the result is
 * larger than `maxResolvedBytes`.
 */
export class Resolution {
  readonly #source: ResolutionSource
  #resolved: string
  /** The number of fragments that are done or in progress. */
  #started = 0
  /** The content whose slots are being filled, and the number of its code units that are done. */
  #content = ""
  #done = 0
  #lookUp: Lookup = () => undefined
  /** The bindings of the content, while they are still being read. */
  #unreadBindings: Bindings | undefined

  constructor(source: ResolutionSource) {
    this.#source = source
    this.#resolved = source.current_content
  }

  /** The UTF-16 code units of the content that is resolved so far. */
  get resolvedLength(): number {
    return this.#resolved.length
  }

  /** Processes about `units` code units of contents and overrides. Returns `undefined` if more are left. */
  run(units: number): Result.Result<ResolvedPrompt, ResolvedTooLarge> | undefined {
    const { fragments } = this.#source
    let remaining = units
    for (;;) {
      if (this.#resolved.length > maxResolvedBytes) return Result.fail(ResolvedTooLarge(this.#source.id))
      if (this.#done === this.#content.length) {
        const fragment = fragments[this.#started]
        if (fragment === undefined) return this.#toResult()
        if (remaining <= 0) return undefined
        this.#started++
        this.#startFragment(fragment)
        remaining -= fragmentUnits
      } else if (remaining <= 0) {
        return undefined
      } else if (this.#unreadBindings === undefined) {
        remaining -= this.#fillSlots(remaining)
      } else {
        remaining -= this.#unreadBindings.read(remaining)
        if (this.#unreadBindings.isRead) this.#unreadBindings = undefined
      }
    }
  }

  #startFragment({ content, variable_overrides: overrides }: SourceFragment): void {
    this.#resolved += separator
    this.#content = ""
    this.#done = 0
    if (!isJsonObject(overrides) || !content.includes("{{")) {
      this.#resolved += content
      return
    }
    this.#content = content
    if (overrides instanceof JsonText) {
      const bindings = new Bindings(overrides)
      this.#unreadBindings = bindings
      this.#lookUp = (name) => bindings.get(name)
    } else {
      this.#lookUp = makeLookup(overrides)
    }
  }

  /** Fills the slots of about the next `units` code units of the content. Returns the number of code units done. */
  #fillSlots(units: number): number {
    const content = this.#content
    const size = Math.max(units, 2 * maxSlotLength)
    const isLast = content.length - this.#done <= size
    const part = this.#done === 0 && isLast ? content : content.slice(this.#done, this.#done + size)
    // Joined at once, because a string that was built by many concatenations is slow to read.
    const pieces: Array<string> = []
    let { length } = this.#resolved
    let copiedEnd = 0
    let scannedEnd = 0
    while (length <= maxResolvedBytes) {
      slotPattern.lastIndex = scannedEnd
      const match = slotPattern.exec(part)
      if (match === null) break
      scannedEnd = slotPattern.lastIndex
      const name = toSlotName(match[1] ?? "")
      const value = name === undefined ? undefined : this.#lookUp(name)
      if (value === undefined) continue
      pieces.push(part.slice(copiedEnd, match.index), value)
      length += match.index - copiedEnd + value.length
      copiedEnd = scannedEnd
    }
    // A slot may start in the last code units of this part and end in the next part.
    const end = isLast ? part.length : Math.max(scannedEnd, part.length - maxSlotLength + 1)
    pieces.push(part.slice(copiedEnd, end))
    this.#resolved += pieces.join("")
    this.#done += end
    return end
  }

  #toResult(): Result.Result<ResolvedPrompt, ResolvedTooLarge> {
    const { id, title, prompt_type, target_model, fragments } = this.#source
    return fitsLimit(this.#resolved)
      ? Result.succeed({
          id,
          title,
          prompt_type,
          target_model,
          resolved_content: this.#resolved,
          fragment_count: fragments.length
        })
      : Result.fail(ResolvedTooLarge(id))
  }
}

/** Resolves a prompt in one step. */
export const resolve = (source: ResolutionSource): Result.Result<ResolvedPrompt, ResolvedTooLarge> =>
  // biome-ignore lint/style/noNonNullAssertion: an unlimited step leaves nothing
  new Resolution(source).run(Number.POSITIVE_INFINITY)!
