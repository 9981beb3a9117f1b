import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import {
  isCollection,
  isMap,
  isNode,
  isScalar,
  parseDocument,
  type ScalarTag,
  stringify,
  type Tags
} from "yaml"
import { formatDecimal, isExactNumber, parseNumber } from "../../../../domain/Json.ts"
import type { Problem } from "../../../../domain/workspace/Problem.ts"

// The text of a prompt or a fragment: front matter in YAML between two lines of `---`, or none, then the body. The
// format is described in docs/prompts-as-files.md.

/** The parts of a text. Joined, they are the text. */
interface TextParts {
  /** A byte order mark, if any, and the line that opens the front matter, if any. */
  readonly opening: string
  /** The YAML of the front matter; undefined without front matter. */
  readonly yaml: string | undefined
  readonly closing: string
  readonly body: string
}

/** The values of front matter by key. A key whose value is undefined is missing. */
export type FrontMatter = Readonly<Record<string, unknown>>

/** Returns true if the first line ends with CRLF: Git may have converted the line endings of the file. */
const hasWindowsLineEndings = (text: string): boolean => /^[^\n]*\r\n/.test(text)

const toUnixLineEndings = (text: string): string =>
  hasWindowsLineEndings(text) ? text.replaceAll("\r\n", "\n") : text

/** Splits a text into its parts. Returns `undefined` if its front matter has no end. */
const splitText = (text: string): TextParts | undefined => {
  const [opening = ""] = /^\ufeff?---[ \t]*\r?\n/.exec(text) ?? []
  if (opening === "") {
    const mark = text.startsWith("\ufeff") ? "\ufeff" : ""
    return { opening: mark, yaml: undefined, closing: "", body: text.slice(mark.length) }
  }
  const afterOpening = text.slice(opening.length)
  const closing = /(?<![^\n])---[ \t]*(?:\r?\n|$)/.exec(afterOpening)
  if (closing === null) return undefined
  return {
    opening,
    yaml: afterOpening.slice(0, closing.index),
    closing: closing[0],
    body: afterOpening.slice(closing.index + closing[0].length)
  }
}

/** Converts a number of YAML to the number that PostgreSQL prints, which has all of its digits. */
const toNumber = (text: string): unknown => {
  const decimal = /^0[ox]/.test(text) ? String(BigInt(text)) : formatDecimal(text)
  return decimal === undefined ? Number(text) : parseNumber(decimal)
}

const toText = (value: unknown): string => (isExactNumber(value) ? value.rawJSON : String(value))

/** Keeps all digits of numbers. */
const exactNumber: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  test: /^(?:0o[0-7]+|0x[0-9a-fA-F]+|[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?)$/,
  identify: isExactNumber,
  resolve: toNumber,
  stringify: ({ value }) => toText(value)
}

/** Keeps all digits of numbers that are keys: a key is text. */
const exactKey: ScalarTag = { ...exactNumber, default: "key", resolve: (text) => toText(toNumber(text)) }

const yamlOptions = {
  aliasDuplicateObjects: false,
  customTags: (tags: Tags): Tags => [exactKey, exactNumber, ...tags],
  lineWidth: 0,
  logLevel: "error",
  prettyErrors: false
} as const

const parseYaml = (path: string, yaml: string): Result.Result<unknown, ReadonlyArray<Problem>> => {
  const document = parseDocument(yaml, yamlOptions)
  if (document.errors.length > 0) {
    return Result.fail(
      document.errors.map(({ message, pos }) => {
        // The front matter begins on the file's second line.
        const line = yaml.slice(0, pos[0]).split("\n").length + 1
        return { path: `${path}:${line}`, message }
      })
    )
  }
  try {
    return Result.succeed(document.toJS() ?? {})
  } catch (error) {
    return Result.fail([{ path, message: (error as Error).message }])
  }
}

/**
 * Parses a text into front matter and body. A text without front matter is all body. One trailing newline is not part
 * of the body. Numbers that JavaScript cannot hold are `ExactNumber`s.
 */
export const parseText = (
  path: string,
  text: string
): Result.Result<{ readonly frontMatter: unknown; readonly body: string }, ReadonlyArray<Problem>> => {
  const parts = splitText(toUnixLineEndings(text))
  if (parts === undefined)
    return Result.fail([{ path: `${path}:1`, message: "the front matter has no end: add a line of ---" }])
  const { yaml = "", body } = parts
  return Result.map(parseYaml(path, yaml), (frontMatter) => ({
    frontMatter,
    body: body.endsWith("\n") ? body.slice(0, -1) : body
  }))
}

const renderFrontMatter = (frontMatter: FrontMatter): string => stringify(frontMatter, yamlOptions)

/** Renders the text that `parseText` parses. */
export const renderText = (frontMatter: FrontMatter, body: string): string =>
  `---\n${renderFrontMatter(frontMatter)}---\n${body}\n`

/** Renders a key and its value, in flow style if the value that it replaces has that style. */
const renderPair = (key: string, value: unknown, replaced: unknown): string => {
  if (!isCollection(replaced) || replaced.flow !== true) return renderFrontMatter({ [key]: value })
  const flow = stringify(value, { ...yamlOptions, collectionStyle: "flow", flowCollectionPadding: false })
  return `${key}: ${flow}`
}

/**
 * Sets keys of a block mapping in YAML; a key whose value is undefined is removed, with the comment on its line. All
 * other text stays as it is. Returns `undefined` for YAML that is no block mapping.
 */
const setKeys = (yaml: string, changes: ReadonlyMap<string, unknown>): string | undefined => {
  const { contents } = parseDocument(yaml, yamlOptions)
  if (contents !== null && !(isMap(contents) && contents.flow !== true)) return undefined
  const added = new Map(changes)
  let edited = yaml
  // From the end, so that no edit moves the text of another one.
  for (const { key: keyNode, value: node } of contents?.items.toReversed() ?? []) {
    if (!isScalar(keyNode) || !keyNode.range || !isNode(node) || !node.range) continue
    const key = String(keyNode.value)
    if (!added.delete(key)) continue
    const value = changes.get(key)
    // Some ranges of values end after the end of the line, and some end before a comment.
    const end = node.range[1] - (yaml[node.range[1] - 1] === "\n" ? 1 : 0)
    const lineEnd = edited.indexOf("\n", end)
    const comment = edited.slice(end, lineEnd)
    const pair = value === undefined ? "" : renderPair(key, value, node).replace("\n", () => `${comment}\n`)
    edited = edited.slice(0, keyNode.range[0]) + pair + edited.slice(lineEnd + 1)
  }
  return edited + (added.size === 0 ? "" : renderFrontMatter(Object.fromEntries(added)))
}

/** Returns the values of `after` that differ, by key; undefined for a key that is removed. */
const compareFrontMatter = (before: FrontMatter, after: FrontMatter): ReadonlyMap<string, unknown> => {
  const keys = Object.keys({ ...before, ...after })
  return new Map(keys.filter((key) => !Equal.equals(before[key], after[key])).map((key) => [key, after[key]]))
}

/**
 * Changes the front matter of a text from `before` to `after`, and the body unless it is undefined. Lines of keys that
 * do not change stay as they are. Returns `undefined` if the text cannot be changed that way.
 */
export const updateText = (
  text: string,
  before: FrontMatter,
  after: FrontMatter,
  body: string | undefined
): string | undefined => {
  const parts = splitText(toUnixLineEndings(text))
  if (parts === undefined) return undefined
  const { opening, yaml, closing } = parts
  const changes = compareFrontMatter(before, after)
  const newYaml = setKeys(yaml ?? "", changes)
  if (newYaml === undefined) return undefined
  const needsFences = yaml === undefined && changes.size > 0
  const head = opening + (needsFences ? `---\n${newYaml}---\n` : newYaml + closing)
  const needsEnd = parts.body === "" || parts.body.endsWith("\n") || body?.endsWith("\n") === true
  const updated = head + (body === undefined ? parts.body : body + (needsEnd ? "\n" : ""))
  return hasWindowsLineEndings(text) ? updated.replaceAll("\n", "\r\n") : updated
}
