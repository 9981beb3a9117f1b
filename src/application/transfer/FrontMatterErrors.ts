import { diffChars } from "diff"
import { isObject } from "effect/Predicate"
import type { YAMLParseError } from "yaml"
import { PromptType } from "../../domain/Prompt.ts"

// Describes errors of front matter for authors who do not know YAML: what is wrong, and what to write instead.

/** Matches a line with a key and a value. */
const keyAndValue = /^\s*(?:- )?([^\s:]+):[ \t]+(.+?)\s*$/

const suggestQuotes = (line: string): string => {
  const [, key, value] = keyAndValue.exec(line) ?? []
  return key === undefined || value === undefined
    ? 'put quotes around the value, such as title: "Summary: short"'
    : `put quotes around the value: ${key}: ${JSON.stringify(value)}`
}

/** Describes an error of the YAML parser. `line` is the text of the line with the error. */
export const describeYamlError = ({ code, message }: YAMLParseError, line: string): string => {
  const value = keyAndValue.exec(line)?.[2]
  switch (code) {
    case "BLOCK_AS_IMPLICIT_KEY":
    case "MULTILINE_IMPLICIT_KEY":
      return value?.includes(":") === true
        ? suggestQuotes(line)
        : "the key and its value must be on one line, and each key must begin at the start of its line"
    case "BAD_SCALAR_START":
    case "UNEXPECTED_TOKEN":
    case "BLOCK_IN_FLOW":
    case "BAD_ALIAS":
      return suggestQuotes(line)
    case "TAB_AS_INDENT":
      return "replace the tabs at the start of the line with spaces"
    case "DUPLICATE_KEY":
      return "the key occurs twice: remove one of the two lines"
    case "MISSING_CHAR":
      return "a quote or a bracket has no end; if it is a part of the text, put quotes around the value"
    case "BAD_INDENT":
      return message.startsWith("Flow")
        ? `a list or map has no end: add ${message.at(-1)} or, if the bracket is a part of the text, put quotes around the value`
        : "the indentation is wrong: write each key at the start of its line"
    default:
      return `is not valid YAML: ${message}`
  }
}

/** The keys of front matter and of the items of its lists. */
const knownKeys = [
  "id",
  "title",
  "name",
  "description",
  "type",
  "model",
  "intent",
  "tags",
  "favorite",
  "sort_order",
  "fragments",
  "fragment",
  "with",
  "folder"
]

/** Maximum number of characters to add or remove to turn a misspelled key into the suggested key. */
const maxSuggestionDistance = 2

const countDifferences = (a: string, b: string): number =>
  diffChars(a, b).reduce((sum, { added, removed, count }) => (added || removed ? sum + count : sum), 0)

const describeUnknownKey = (key: string): string => {
  if (knownKeys.includes(key)) return `the key ${key} does not belong here`
  const meant = knownKeys.find((known) => countDifferences(key, known) <= maxSuggestionDistance)
  return `unknown key ${key}${meant === undefined ? "" : `; did you mean ${meant}?`}`
}

/** Examples of values that are not texts, by the last key of the path that is a name. */
const examples: Readonly<Record<string, string>> = {
  tags: "must be a list, such as [production, draft]",
  fragments: 'must be a list with lines such as "- fragment: tone"',
  with: 'must have lines such as "tone: friendly"',
  favorite: "must be true or false, without quotes",
  sort_order: "must be a whole number without quotes, such as 1",
  type: `must be one of ${PromptType.literals.join(", ")}`
}

const describeText = (value: unknown): string => {
  if (value === null) return "has no value: add a text, or remove the line"
  const example = isObject(value) || Array.isArray(value) ? "{{name}}" : String(value)
  return `must be a text: put quotes around the value, such as ${JSON.stringify(example)}`
}

/** Returns the value at a path. */
const findValue = (value: unknown, [key, ...others]: ReadonlyArray<string>): unknown =>
  key === undefined
    ? value
    : findValue((value as Readonly<Record<string, unknown>> | undefined)?.[key], others)

/**
 * Describes a problem of decoded front matter. `keys` is the path of the value that is wrong.
 *
 * @param message the message of the schema. Only the messages of checks are written for authors.
 */
export const describeIssue = (keys: ReadonlyArray<string>, message: string, frontMatter: unknown): string => {
  const describe = (): string => {
    if (!message.startsWith("Expected")) return message
    if (keys.length === 0)
      return 'the front matter must have lines with a key, a colon and a space, such as "title: Summary"'
    const example = examples[keys.findLast((key) => !/^\d+$/.test(key)) ?? ""]
    const isItem = keys.length === 2 && keys[0] === "tags"
    return example === undefined || isItem ? describeText(findValue(frontMatter, keys)) : example
  }
  if (message === "Expected no excess property")
    return [...keys.slice(0, -1), describeUnknownKey(keys.at(-1) ?? "")].join(": ")
  if (keys.join() === "id")
    return 'id: must be a UUID, such as "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51", or the earlier path of a file that was moved'
  return [keys.join("."), describe()].filter((text) => text !== "").join(": ")
}
