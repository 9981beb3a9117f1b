import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import { isCollection, isMap, isNode, isScalar, parseDocument, stringify, type YAMLParseError } from "yaml"
import type { Problem } from "../../domain/WorkspaceContent.ts"

// The text of a prompt or a fragment: optional front matter in YAML between two lines of `---`, then the body.
// docs/prompts-as-files.md describes the format.

/** The values of front matter by key. A key whose value is undefined is not written. */
export type FrontMatter = Readonly<Record<string, unknown>>

/**
 * Splits a text into consecutive parts. If the first line ends with CRLF, converts all line endings to LF first,
 * because Git may have converted them. `opening` contains the byte order mark and the line that opens the front matter,
 * if the text has them. Without front matter, `yaml` is undefined. Returns `undefined` if the front matter has no end.
 */
const splitText = (text: string) => {
  const hasWindowsLineEndings = /^[^\n]*\r\n/.test(text)
  const unixText = hasWindowsLineEndings ? text.replaceAll("\r\n", "\n") : text
  const [opening] = /^\ufeff?(?:---[ \t]*\n)?/.exec(unixText) ?? [""]
  const afterOpening = unixText.slice(opening.length)
  if (!opening.endsWith("\n"))
    return { opening, yaml: undefined, closing: "", body: afterOpening, hasWindowsLineEndings }
  const closing = /(?<![^\n])---[ \t]*(?:\r?\n|$)/.exec(afterOpening)
  if (closing === null) return undefined
  return {
    opening,
    yaml: afterOpening.slice(0, closing.index),
    closing: closing[0],
    body: afterOpening.slice(closing.index + closing[0].length),
    hasWindowsLineEndings
  }
}

const yamlOptions = {
  aliasDuplicateObjects: false,
  lineWidth: 0,
  logLevel: "error",
  prettyErrors: false
} as const

/** Describes an error of the YAML parser for authors who do not know YAML. `line` is the text of the erroneous line. */
const describeYamlError = ({ code, message }: YAMLParseError, line: string): string => {
  const [, key, value] = /^\s*(?:- )?([^\s:]+):[ \t]+(.+?)\s*$/.exec(line) ?? []
  const isKeyError = /IMPLICIT_KEY$/.test(code)
  const needsQuotes = isKeyError
    ? value?.includes(":")
    : /^(BAD_SCALAR_START|UNEXPECTED_TOKEN|BLOCK_IN_FLOW|BAD_ALIAS)$/.test(code)
  if (key !== undefined && needsQuotes) return `put quotes around the value: ${key}: ${JSON.stringify(value)}`
  return isKeyError
    ? "the key and its value must be on one line, and each key must begin at the start of its line"
    : `is not valid YAML: ${message}`
}

/** A parsed value, or the problems of the file. */
export type Parsed<A> = Result.Result<A, ReadonlyArray<Problem>>

const parseYaml = (path: string, yaml: string): Parsed<unknown> => {
  const document = parseDocument(yaml, yamlOptions)
  const [error] = document.errors
  if (error !== undefined) {
    const line = yaml.slice(0, error.pos[0]).split("\n").length
    const message = describeYamlError(error, yaml.split("\n")[line - 1] ?? "")
    // The front matter begins on the file's second line.
    return Result.fail([{ path: `${path}:${line + 1}`, message }])
  }
  try {
    return Result.succeed(document.toJS() ?? {})
  } catch (error) {
    const { message } = error as Error
    const isAlias = message.startsWith("Unresolved alias")
    return Result.fail([
      { path, message: isAlias ? "put quotes around a value that begins with *" : message }
    ])
  }
}

/** Matches a text whose first line with other characters than white space is a line of `---`, but not the first line. */
const lateFence = /^\s+---[ \t]*\r?(?:\n|$)/

/**
 * Parses a text into front matter and body. A text without front matter is all body. One trailing newline is not part
 * of the body.
 */
export const parseText = (
  path: string,
  text: string
): Parsed<{ readonly frontMatter: unknown; readonly body: string }> => {
  const parts = splitText(text)
  const fail = (message: string) => Result.fail([{ path: `${path}:1`, message }])
  if (parts === undefined) return fail("the front matter has no end: add a line of ---")
  const { yaml, body } = parts
  if (yaml === undefined && lateFence.test(body))
    return fail("the line of --- that opens the front matter must be the first line: remove what precedes it")
  return Result.map(parseYaml(path, yaml ?? ""), (frontMatter) => ({
    frontMatter,
    body: body.endsWith("\n") ? body.slice(0, -1) : body
  }))
}

/** Renders the text that `parseText` parses. */
export const renderText = (frontMatter: FrontMatter, body: string): string =>
  `---\n${stringify(frontMatter, yamlOptions)}---\n${body}\n`

/** Renders a key and its value. If `isFlow` is true, renders one line. If the value is undefined, renders nothing. */
const renderPair = (key: string, value: unknown, isFlow = false): string => {
  if (value === undefined) return ""
  if (!isFlow) return stringify({ [key]: value }, yamlOptions)
  const flow = { ...yamlOptions, collectionStyle: "flow", flowCollectionPadding: false } as const
  return `${key}: ${stringify(value, flow)}`
}

/**
 * Updates the pairs of YAML whose values differ between `before` and `after`: replaces, adds or removes them. Keeps a
 * comment after a replaced value, and all other text. `Document.toString` would reformat the other text.
 */
const updateYaml = (yaml: string, before: FrontMatter, after: FrontMatter): string => {
  const keys = Object.keys({ ...before, ...after })
  const changed = new Set(keys.filter((key) => !Equal.equals(before[key], after[key])))
  const { contents } = parseDocument(yaml, yamlOptions)
  let updated = yaml
  // Starts with the last pair, because a replacement moves all text after it.
  for (const { key: keyNode, value } of isMap(contents) ? contents.items.toReversed() : []) {
    if (!isScalar(keyNode) || !keyNode.range || !isNode(value) || !value.range) continue
    const key = String(keyNode.value)
    if (!changed.delete(key)) continue
    // The range of a block value includes the newline at the end of its last line.
    const lineEnd = yaml.indexOf("\n", value.range[1] - 1)
    const comment = yaml.slice(value.range[1], lineEnd)
    const isFlow = isCollection(value) && value.flow === true
    const pair = renderPair(key, after[key], isFlow).replace("\n", () => `${comment}\n`)
    updated = updated.slice(0, keyNode.range[0]) + pair + updated.slice(lineEnd + 1)
  }
  return updated + [...changed].map((key) => renderPair(key, after[key])).join("")
}

/**
 * Changes the front matter of a text from `before` to `after`. Replaces the body with `body` unless `body` is
 * undefined. The lines of unchanged keys stay as they are. Returns `undefined` if the front matter has no end.
 */
export const updateText = (
  text: string,
  before: FrontMatter,
  after: FrontMatter,
  body: string | undefined
): string | undefined => {
  const parts = splitText(text)
  if (parts === undefined) return undefined
  const yaml = updateYaml(parts.yaml ?? "", before, after)
  const { hasWindowsLineEndings } = parts
  const needsFences = parts.yaml === undefined && yaml !== ""
  const head = parts.opening + (needsFences ? `---\n${yaml}---\n` : yaml + parts.closing)
  const needsEnd = parts.body === "" || parts.body.endsWith("\n") || body?.endsWith("\n") === true
  const updated = head + (body === undefined ? parts.body : body + (needsEnd ? "\n" : ""))
  return hasWindowsLineEndings ? updated.replaceAll("\n", "\r\n") : updated
}
