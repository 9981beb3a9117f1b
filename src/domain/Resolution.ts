import * as Result from "effect/Result"
import { Bindings, boundText, JsonText } from "./Bindings.ts"
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

/**
 * One row of the prompt-to-fragment join. `variable_overrides` is free-form JSON, or the `JsonText` of it: what is no
 * binding is ignored.
 */
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
const maxSlotLength = 260

const separator = "\n\n"

/** Gives the text that a name is bound to. */
type Lookup = (name: string) => string | undefined

const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value)

const fits = (text: string): boolean =>
  text.length * 3 <= maxResolvedBytes || new TextEncoder().encode(text).length <= maxResolvedBytes

const lookUpIn =
  (overrides: Readonly<Record<string, unknown>>): Lookup =>
  (name) =>
    Object.hasOwn(overrides, name) ? boundText(overrides[name]) : undefined

/**
 * Resolves a prompt (SPEC.md section 2.8) step by step: its content, then for each fragment two newlines and the fragment's
 * content with its slots filled. The prompt's own slots are the caller's to fill and stay. Slots are filled in one pass:
 * what a binding brings in is not read again, and a slot without a binding stays as it is. Fails as soon as the result
 * measures more than `maxResolvedBytes`.
 */
export class Resolution {
  readonly #source: ResolutionSource
  #resolved: string
  /** How many fragments are done or begun. */
  #begun = 0
  /** The content whose slots are being filled, and how much of it is done. */
  #content = ""
  #done = 0
  #lookUp: Lookup = () => undefined
  /** The bindings of that content that are still being read. */
  #reading: Bindings | undefined

  constructor(source: ResolutionSource) {
    this.#source = source
    this.#resolved = source.current_content
  }

  /** Works through about `units` code units of contents and overrides; gives `undefined` while more are left. */
  run(units: number): Result.Result<ResolvedPrompt, ResolvedTooLarge> | undefined {
    const { fragments } = this.#source
    let left = units
    for (;;) {
      if (this.#resolved.length > maxResolvedBytes) return Result.fail(ResolvedTooLarge(this.#source.id))
      if (this.#done === this.#content.length) {
        if (this.#begun === fragments.length) return this.#result()
        this.#begin(fragments[this.#begun++]!)
      } else if (left <= 0) {
        return undefined
      } else if (this.#reading === undefined) {
        left -= this.#fill(left)
      } else {
        left -= this.#reading.read(left)
        if (this.#reading.isRead) this.#reading = undefined
      }
    }
  }

  #begin({ content, variable_overrides: overrides }: FragmentUse): void {
    this.#resolved += separator
    this.#content = ""
    this.#done = 0
    if (!isMap(overrides) || !content.includes("{{")) {
      this.#resolved += content
      return
    }
    this.#content = content
    if (overrides instanceof JsonText) {
      const bindings = new Bindings(overrides)
      this.#reading = bindings
      this.#lookUp = (name) => bindings.get(name)
    } else {
      this.#lookUp = lookUpIn(overrides)
    }
  }

  /** Fills the slots of about the next `units` code units of the content, and gives how many are done. */
  #fill(units: number): number {
    const content = this.#content
    const size = Math.max(units, 2 * maxSlotLength)
    const isLast = content.length - this.#done <= size
    const part = this.#done === 0 && isLast ? content : content.slice(this.#done, this.#done + size)
    // Joined at once: a string of many parts is slow to read.
    const pieces: Array<string> = []
    let { length } = this.#resolved
    let copied = 0
    let read = 0
    while (length <= maxResolvedBytes) {
      slot.lastIndex = read
      const match = slot.exec(part)
      if (match === null) break
      read = slot.lastIndex
      const name = match[1]!.trim()
      const value = name === "" ? undefined : this.#lookUp(name)
      if (value === undefined) continue
      pieces.push(part.slice(copied, match.index), value)
      length += match.index - copied + value.length
      copied = read
    }
    // A slot may begin in the last code units of the part and end in the next part.
    const end = isLast ? part.length : Math.max(read, part.length - maxSlotLength + 1)
    pieces.push(part.slice(copied, end))
    this.#resolved += pieces.join("")
    this.#done += end
    return end
  }

  #result(): Result.Result<ResolvedPrompt, ResolvedTooLarge> {
    const { id, title, prompt_type, target_model, fragments } = this.#source
    return fits(this.#resolved)
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

/** Resolves a prompt at once, however long it takes. */
export const resolve = (source: ResolutionSource): Result.Result<ResolvedPrompt, ResolvedTooLarge> =>
  new Resolution(source).run(Number.POSITIVE_INFINITY)!
