/**
 * Letters and digits that every version of TypeScript and JavaScript accepts in identifiers: Latin, Greek, Cyrillic,
 * Hebrew, Arabic, kana, Han and Hangul. The ranges are fixed, so that a newer version of Unicode changes no identifier.
 */
const letters =
  "a-zA-Z\\u00c0-\\u00d6\\u00d8-\\u00f6\\u00f8-\\u024f\\u0386\\u0388-\\u038a\\u038c\\u038e-\\u03a1\\u03a3-\\u03ce" +
  "\\u0400-\\u0481\\u048a-\\u0527\\u05d0-\\u05ea\\u0620-\\u063f\\u0641-\\u064a\\u3041-\\u3096\\u30a1-\\u30fa\\u30fc" +
  "\\u4e00-\\u9fa5\\uac00-\\ud7a3"
const wordPattern = new RegExp(`[0-9${letters}]+`, "g")

/** Matches the upper-case letters at the start of a word: the first letter, or all letters of an abbreviation. */
const leadingCapitalsPattern = /^(?:\p{Lu}+(?=\p{Lu}\p{Ll}|\P{L}|$)|\p{Lu})/u

/** Words that cannot be the name of a constant in a script, an ES module or a CommonJS module. */
const reserved = new Set(
  (
    "arguments await break case catch class const continue debugger default delete do else enum eval export exports " +
    "extends false finally for function globalThis if implements import in instanceof interface let module new null " +
    "package private protected public require return static super switch this throw true try typeof undefined var " +
    "void while with yield"
  ).split(" ")
)

/** Converts a title to camel case. Returns the empty text if the title has no letters or digits. */
const toCamelCase = (title: string): string => {
  const [first = "", ...others] = title.normalize("NFC").match(wordPattern) ?? []
  const head = first.replace(leadingCapitalsPattern, (capitals) => capitals.toLowerCase())
  const tail = others.map((word) => word.charAt(0).toUpperCase() + word.slice(1))
  return (head + tail.join("")).normalize("NFC")
}

const toBaseName = (title: string): string => {
  const name = toCamelCase(title) || "prompt"
  if (reserved.has(name)) return `${name}_`
  return /^\d/.test(name) ? `_${name}` : name
}

/** Minimum length of the id suffix that distinguishes prompts with equal names. */
const minSuffixLength = 8

/**
 * Returns a different name for each id: the given name with the first digits of the id, as few as possible but at least
 * `minSuffixLength`.
 */
const addSuffixes = (name: string, ids: ReadonlyArray<string>): ReadonlyArray<string> => {
  const digits = ids.map((id) => id.replaceAll("-", ""))
  for (let length = minSuffixLength; ; length++) {
    const suffixes = digits.map((text) => text.slice(0, length))
    if (new Set(suffixes).size === ids.length) return suffixes.map((suffix) => `${name}_${suffix}`)
  }
}

/**
 * Makes the name of a constant for each prompt from its title. Returns the names by prompt id. If several titles give
 * the same name, or a title gives no name or the name `prompt`, the first digits of the prompt's id follow each of
 * these names. So a new prompt never takes the name of another prompt. The ids must be different UUIDs.
 */
export const nameConstants = (
  prompts: ReadonlyArray<{ readonly id: string; readonly title: string }>
): ReadonlyMap<string, string> => {
  const idsByName = new Map<string, Array<string>>()
  for (const { id, title } of prompts) {
    const name = toBaseName(title)
    const ids = idsByName.get(name)
    if (ids === undefined) idsByName.set(name, [id])
    else ids.push(id)
  }
  return new Map(
    [...idsByName].flatMap(([name, ids]) => {
      const names = ids.length === 1 && name !== "prompt" ? [name] : addSuffixes(name, ids)
      return ids.map((id, index) => [id, names[index]!] as const)
    })
  )
}
