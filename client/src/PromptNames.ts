import { NotFoundError } from "./Errors.ts"
import type { PromptReference } from "./PromptReference.ts"

// docs/names.md states the rule for names. The service has a second implementation of the rule. A test checks that both
// implementations give the same names.

/** The fields of a prompt from which its name is made. */
export interface TitledPrompt {
  readonly id: string
  readonly title: string
}

/** Returns true for a string that is the id of a prompt. Any other string is a name. */
export const isId = (text: string): boolean => /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i.test(text)

/** Returns the name or the id by which a prompt is addressed. */
export const toName = (prompt: string | PromptReference): string => {
  const name = typeof prompt === "string" ? prompt : (prompt?.name ?? prompt?.id)
  if (typeof name !== "string" || name === "") throw new TypeError("prompt must be a name or an id")
  return name
}

const toSlug = (title: string): string => {
  const slug = Array.from(title)
    .slice(0, 200)
    .join("")
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .replaceAll("ß", "ss")
    .replace(/[^a-z0-9_]+/g, "-")
    .replace(/^-/, "")
    .slice(0, 64)
    .replace(/-$/, "")
  return slug || "prompt"
}

/** Matches a slug, a hyphen and the first 8 digits or all 32 digits of an id. */
const suffixedNamePattern = /^(.+)-([0-9a-f]{8}|[0-9a-f]{32})$/

const toDigits = (id: string): string => id.replaceAll("-", "")

/** The names of all prompts in a workspace's list. */
export class PromptNames {
  #idsBySlug = new Map<string, Array<string>>()
  /** The in-flight reads of the list, by the limits (timeout and retries) of their requests. */
  readonly #inFlightReads = new Map<string, Promise<void>>()

  constructor(prompts: Iterable<TitledPrompt> = []) {
    for (const prompt of prompts) this.#add(prompt)
  }

  getName({ id, title }: TitledPrompt): string {
    const slug = toSlug(title)
    const others = this.#findIds(slug).filter((other) => other !== id)
    if (!others.length && !suffixedNamePattern.test(slug)) return slug
    const start = id.slice(0, 8)
    return `${slug}-${others.some((other) => other.startsWith(start)) ? toDigits(id) : start}`
  }

  /**
   * Returns the id of the prompt that has the name. Returns `undefined` if no prompt or more than one prompt has this
   * name.
   */
  findId(name: string): string | undefined {
    const [, slug = name, digits = ""] = suffixedNamePattern.exec(name) ?? []
    const ids = this.#findIds(slug).filter((id) => toDigits(id).startsWith(digits))
    return ids.length === 1 ? ids[0] : undefined
  }

  /** Returns the id of the prompt that has the name. Throws a `NotFoundError` that suggests the nearest name. */
  requireId(name: string): string {
    const id = this.findId(name)
    if (id) return id
    const slug = toSlug(name)
    const pairs = Array.from(slug, (_, index) => slug.slice(index, index + 2))
    let [nearest, best] = ["", 0]
    for (const [title, [id]] of this.#idsBySlug) {
      const score = pairs.filter((pair) => title.includes(pair)).length / (slug.length + title.length)
      if (score > best) [nearest, best] = [`; did you mean ${this.getName({ id: id!, title })}?`, score]
    }
    const message = `No prompt has the name ${name}${nearest}`
    throw new NotFoundError({ status: 404, code: "NOT_FOUND", message })
  }

  /** Reads the list of all prompts of the workspace, and replaces the earlier list. */
  async read(list: AsyncIterable<TitledPrompt> | Iterable<TitledPrompt>): Promise<void> {
    const prompts: Array<TitledPrompt> = []
    for await (const prompt of list) prompts.push(prompt)
    this.#idsBySlug = new PromptNames(prompts).#idsBySlug
  }

  /**
   * Returns the id of the prompt with a name. Reads the list until the list contains the name, at most twice, because
   * an edit during the first read can hide a prompt. Concurrent calls with the same limits share a read. `goneId` is
   * the id of a prompt that had the name and no longer exists.
   */
  async lookUp(
    name: string,
    goneId: string | undefined,
    limits: string,
    startList: () => AsyncIterable<TitledPrompt>
  ): Promise<string> {
    for (let reads = 0; reads < 2; reads++) {
      const id = this.findId(name)
      if (id && id !== goneId) break
      let read = this.#inFlightReads.get(limits)
      if (!read) {
        read = this.read(startList()).finally(() => this.#inFlightReads.delete(limits))
        this.#inFlightReads.set(limits, read)
      }
      await read
    }
    return this.requireId(name)
  }

  #add({ id, title }: TitledPrompt): void {
    const slug = toSlug(title)
    const ids = this.#idsBySlug.get(slug)
    if (ids) ids.push(id)
    else this.#idsBySlug.set(slug, [id])
  }

  #findIds(slug: string): ReadonlyArray<string> {
    return this.#idsBySlug.get(slug) ?? []
  }
}
