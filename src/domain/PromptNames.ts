import type { PromptId, PromptTitle } from "./Prompt.ts"

/** The slug of a title depends only on this many code points at the start of the title. */
export const maxSlugSourceLength = 200

/** Returns the part of a title that its slug depends on. */
export const truncateTitle = (title: string): string =>
  title.length <= maxSlugSourceLength
    ? title
    : Array.from(title.slice(0, 2 * maxSlugSourceLength))
        .slice(0, maxSlugSourceLength)
        .join("")

const maxSlugLength = 64

/** The slug of a title that would otherwise have an empty slug. */
const emptySlug = "prompt"

/**
 * Returns the slug of a title, 1 to 64 ASCII characters. Accents are dropped, letters become lowercase, and `ß` becomes
 * `ss`. Then each run of characters other than ASCII letters, digits and underscores becomes one hyphen, and hyphens at
 * the ends are dropped. If no character remains, the slug is `prompt`.
 */
export const toSlug = (title: string): string => {
  const slug = truncateTitle(title)
    .normalize("NFKD")
    .replace(/\p{M}+/gu, "")
    .toLowerCase()
    .replaceAll("ß", "ss")
    .replace(/[^a-z0-9_]+/g, "-")
    .replace(/^-/, "")
    .slice(0, maxSlugLength)
    .replace(/-$/, "")
  return slug === "" ? emptySlug : slug
}

/** Matches a slug, a hyphen, and the first 8 or all 32 hexadecimal digits of an id. */
const suffixedNamePattern = /^(.+)-([0-9a-f]{8}|[0-9a-f]{32})$/

const toDigits = (id: PromptId): string => id.replaceAll("-", "")

/**
 * The names of the prompts of one workspace. The name of a prompt is the slug of its title, if no other prompt has this
 * slug and the slug does not end like an id. Otherwise, a hyphen and digits of the prompt's id follow the slug: the
 * first 8 digits, or all 32 if another prompt with the same slug has the same first 8. While a prompt keeps its title
 * and is neither archived nor deleted, no name that it has had with this title denotes another prompt.
 */
export class PromptNames {
  readonly #idsBySlug = new Map<string, PromptId | Array<PromptId>>()
  #size = 0

  /**
   * Adds a prompt. Add all prompts before reading the first name, because a further prompt may change the names of
   * others.
   */
  add({ id, title }: Pick<PromptTitle, "id" | "title">): void {
    const slug = toSlug(title)
    const ids = this.#idsBySlug.get(slug)
    if (ids === undefined) this.#idsBySlug.set(slug, id)
    else if (typeof ids === "string") this.#idsBySlug.set(slug, [ids, id])
    else ids.push(id)
    this.#size++
  }

  get size(): number {
    return this.#size
  }

  /** Returns the name of a prompt. The name of a prompt that was not added ends with digits of its id. */
  getName({ id, title }: Pick<PromptTitle, "id" | "title">): string {
    const slug = toSlug(title)
    if (this.#idsBySlug.get(slug) === id && !suffixedNamePattern.test(slug)) return slug
    const start = id.slice(0, 8)
    const isUnique = this.#findIds(slug).every((other) => other === id || !other.startsWith(start))
    return `${slug}-${isUnique ? start : toDigits(id)}`
  }

  /**
   * Returns the id of the prompt with this name, or `undefined` if no prompt has the name. The slug followed by digits
   * of the id is accepted even if the slug alone is the name of the prompt. Such a name therefore stays valid when
   * another prompt gets or loses the same slug. There is one exception: 8 digits denote no prompt while two prompts
   * with the same slug have these digits.
   */
  findId(name: string): PromptId | undefined {
    const ids = this.#idsBySlug.get(name)
    if (typeof ids === "string" && !suffixedNamePattern.test(name)) return ids
    const [, slug = "", suffix = ""] = suffixedNamePattern.exec(name) ?? []
    const [id, ...others] = this.#findIds(slug).filter((id) => toDigits(id).startsWith(suffix))
    return others.length === 0 ? id : undefined
  }

  #findIds(slug: string): ReadonlyArray<PromptId> {
    const ids = this.#idsBySlug.get(slug)
    return ids === undefined ? [] : typeof ids === "string" ? [ids] : ids
  }
}
