import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import type * as SchemaIssue from "effect/SchemaIssue"
import { diffChars } from "diff"
import {
  type Document,
  isCollection,
  isMap,
  isNode,
  isPair,
  isScalar,
  type Pair,
  parseDocument,
  Scalar,
  type ScalarTag,
  stringify,
  type Tags,
  visit
} from "yaml"
import {
  ArchiveFolder,
  ArchiveFragment,
  ArchivePrompt,
  ArchiveVersion
} from "../../../../application/formats/Archive.ts"
import { formatIssue } from "../../../../application/formats/ProblemList.ts"
import { type ExactNumber, isExactNumber, parseNumber, formatDecimal } from "../../../../domain/Json.ts"
import type { Problem } from "../../../../domain/Problem.ts"
import { limitFragments, limitTags } from "../../../../domain/Workspace.ts"

// The text of a prompt or a fragment: front matter in YAML between two lines of `---`, or none, then the body. The
// format is described in docs/prompts-as-files.md.

const { title, description, target_model, intent, current_content } = ArchivePrompt.fields
const { name: Name } = ArchiveFolder.fields

/** The front matter of a prompt. */
export const PromptFrontMatter = Schema.Struct({
  id: Schema.optionalKey(ArchivePrompt.fields.id),
  title: Schema.optionalKey(title),
  description: Schema.optionalKey(description),
  type: Schema.optionalKey(ArchivePrompt.fields.prompt_type),
  model: Schema.optionalKey(target_model),
  intent: Schema.optionalKey(intent),
  tags: Schema.optionalKey(limitTags(Name)),
  favorite: Schema.optionalKey(Schema.Boolean),
  sort_order: Schema.optionalKey(ArchivePrompt.fields.sort_order),
  fragments: Schema.optionalKey(
    limitFragments(
      Schema.Struct({
        fragment: Schema.String,
        with: Schema.optionalKey(ArchiveVersion.fields.metadata)
      })
    )
  ),
  /**
   * The name of the folder, or null for no folder, if the path does not express it. The length of the name is checked
   * later, because it may come from the path.
   */
  folder: Schema.optionalKey(Schema.NullOr(description))
})
export type PromptFrontMatter = typeof PromptFrontMatter.Type

/** The front matter of a fragment. */
export const FragmentFrontMatter = Schema.Struct({
  id: Schema.optionalKey(ArchiveFragment.fields.id),
  name: Schema.optionalKey(ArchiveFragment.fields.name)
})
export type FragmentFrontMatter = typeof FragmentFrontMatter.Type

/** The keys of front matter and of the items of its lists. */
const knownKeys: ReadonlyArray<string> = [
  ...Object.keys(PromptFrontMatter.fields),
  "name",
  "fragment",
  "with"
]

/** The most characters by which a misspelled key differs from the key that is meant. */
const maxSuggestionDistance = 2

const countDifferences = (a: string, b: string): number =>
  diffChars(a, b).reduce((sum, { added, removed, count }) => (added || removed ? sum + count : sum), 0)

const suggestKey = (key: string): string => {
  const [nearest] = knownKeys
    .map((known) => ({ known, distance: countDifferences(key, known) }))
    .filter(({ distance }) => distance <= maxSuggestionDistance)
    .sort((a, b) => a.distance - b.distance)
  return nearest === undefined ? "" : `; did you mean ${nearest.known}?`
}

const describeIssue = (keys: ReadonlyArray<string>, message: string): string => {
  if (message === "Expected no excess property") {
    const key = keys.at(-1) ?? ""
    return [...keys.slice(0, -1), `unknown key ${key}${suggestKey(key)}`].join(": ")
  }
  if (keys.join() === "id") return 'id: must be a UUID, such as "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51"'
  return [keys.join("."), message].filter((text) => text !== "").join(": ")
}

const toProblems = (path: string, issue: SchemaIssue.Issue): ReadonlyArray<Problem> =>
  formatIssue(issue).issues.map((issue) => ({
    path,
    message: describeIssue((issue.path ?? []).map(String), issue.message)
  }))

/** The parts of a file's text. Joined, they are the text. */
interface TextParts {
  /** A byte order mark, if any, and the line that opens the front matter, if any. */
  readonly opening: string
  /** The YAML of the front matter; undefined without front matter. */
  readonly yaml: string | undefined
  readonly closing: string
  readonly body: string
  /** The first line ending of the file. */
  readonly lineEnding: string
}

/** Splits a text into its parts. Returns `undefined` if its front matter has no end. */
const splitText = (text: string): TextParts | undefined => {
  const opening = /^\ufeff?---[ \t]*(\r?\n)/.exec(text)
  if (opening === null) {
    const mark = text.startsWith("\ufeff") ? "\ufeff" : ""
    const lineEnding = /\r?\n/.exec(text)?.[0] ?? "\n"
    return { opening: mark, yaml: undefined, closing: "", body: text.slice(mark.length), lineEnding }
  }
  const afterOpening = text.slice(opening[0].length)
  const closing = /(?<![^\n])---[ \t]*(?:\r?\n|$)/.exec(afterOpening)
  if (closing === null) return undefined
  return {
    opening: opening[0],
    yaml: afterOpening.slice(0, closing.index),
    closing: closing[0],
    body: afterOpening.slice(closing.index + closing[0].length),
    lineEnding: opening[1] ?? "\n"
  }
}

/** Returns the content that a body stands for. */
const toContent = ({ body, lineEnding }: TextParts): string => {
  // Git may have converted the line endings to CRLF; they are not part of the content.
  const content = lineEnding === "\r\n" ? body.replaceAll("\r\n", "\n") : body
  return content.endsWith("\n") ? content.slice(0, -1) : content
}

/** Converts the text of a number in YAML to the decimal that PostgreSQL prints. Returns `undefined` if it is not a number. */
const toDecimalText = (source: string): string | undefined =>
  /^0[ox]/.test(source) ? String(BigInt(source)) : formatDecimal(source)

const isOverrides = (node: unknown): boolean =>
  isPair(node) && isScalar(node.key) && node.key.value === "with"

/** Makes the numbers of variable overrides exact. A number that is a variable's name becomes its exact text. */
const restoreNumbers = (document: Document): void =>
  visit(document, {
    Scalar: (key, node, path) => {
      if (typeof node.value !== "number" || node.source === undefined || !path.some(isOverrides)) return
      const decimal = toDecimalText(node.source)
      if (decimal === undefined) return
      const number = parseNumber(decimal)
      node.value = key === "key" && isExactNumber(number) ? number.rawJSON : number
    }
  })

const exactNumber: ScalarTag = {
  tag: "tag:yaml.org,2002:float",
  default: true,
  identify: isExactNumber,
  resolve: (text) => text,
  createNode: (_, value) => new Scalar(value),
  stringify: ({ value }) => (value as ExactNumber).rawJSON
}

const parseYaml = (path: string, yaml: string): Result.Result<unknown, ReadonlyArray<Problem>> => {
  const document = parseDocument(yaml, { prettyErrors: false })
  if (document.errors.length > 0) {
    return Result.fail(
      document.errors.map(({ message, pos }) => {
        // The front matter begins on the file's second line.
        const line = yaml.slice(0, pos[0]).split("\n").length + 1
        return { path: `${path}:${line}`, message }
      })
    )
  }
  restoreNumbers(document)
  try {
    return Result.succeed(document.toJS() ?? {})
  } catch (error) {
    return Result.fail([{ path, message: (error as Error).message }])
  }
}

/**
 * Parses a text into front matter and body. A text without front matter is all body. Fails with every problem of the
 * text. One trailing newline is not part of the body.
 */
export const parseText = <FrontMatter>(
  schema: Schema.Codec<FrontMatter, unknown>,
  path: string,
  text: string
): Result.Result<{ readonly frontMatter: FrontMatter; readonly body: string }, ReadonlyArray<Problem>> => {
  const parts = splitText(text)
  if (parts === undefined)
    return Result.fail([{ path: `${path}:1`, message: "the front matter has no end: add a line of ---" }])
  const yaml = parseYaml(path, parts.yaml ?? "")
  if (Result.isFailure(yaml)) return Result.fail(yaml.failure)
  const decoded = Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })(
    yaml.success
  )
  if (Result.isFailure(decoded)) return Result.fail(toProblems(path, decoded.failure.issue))
  const content = toContent(parts)
  const body = Schema.decodeUnknownResult(Schema.Struct({ body: current_content }))({ body: content })
  if (Result.isFailure(body)) return Result.fail(toProblems(path, body.failure.issue))
  return Result.succeed({ frontMatter: decoded.success, body: content })
}

const writeOptions = {
  lineWidth: 0,
  aliasDuplicateObjects: false,
  customTags: (tags: Tags): Tags => [exactNumber, ...tags]
}

/** Renders the text that `parseText` parses. */
export const renderText = (frontMatter: PromptFrontMatter | FragmentFrontMatter, body: string): string =>
  `---\n${stringify(frontMatter, writeOptions)}---\n${body}\n`

/** A part of a text to replace. */
interface TextEdit {
  readonly start: number
  readonly end: number
  readonly text: string
}

/** Returns the edit of a pair of a block mapping. Removes the pair, with its comment, if the value is undefined. */
const editPair = (yaml: string, key: string, value: unknown, pair: Pair): TextEdit | undefined => {
  const [keyNode, valueNode] = [pair.key, pair.value]
  if (!isNode(keyNode) || !isNode(valueNode) || !keyNode.range || !valueNode.range) return undefined
  const [start, end] = [keyNode.range[0], valueNode.range[1]]
  const endsLine = yaml[end - 1] === "\n"
  if (value === undefined) {
    const lineEnd = endsLine ? end : yaml.indexOf("\n", end) + 1
    return { start, end: lineEnd === 0 ? yaml.length : lineEnd, text: "" }
  }
  const isFlow = isCollection(valueNode) && valueNode.flow === true
  const text = isFlow
    ? `${key}: ${stringify(value, { ...writeOptions, collectionStyle: "flow", flowCollectionPadding: false })}`
    : stringify({ [key]: value }, writeOptions)
  return { start, end, text: endsLine ? text : text.trimEnd() }
}

/** Changes keys of a block mapping in YAML and leaves all other text as it is. Undefined for other YAML. */
const editYaml = (
  yaml: string,
  changes: ReadonlyMap<string, unknown>,
  lineEnding: string
): string | undefined => {
  const { contents } = parseDocument(yaml)
  if (contents !== null && !(isMap(contents) && contents.flow !== true)) return undefined
  const edits: Array<TextEdit> = []
  for (const [key, value] of changes) {
    const pair = contents?.items.find((pair) => isScalar(pair.key) && pair.key.value === key)
    const edit =
      pair === undefined
        ? { start: yaml.length, end: yaml.length, text: stringify({ [key]: value }, writeOptions) }
        : editPair(yaml, key, value, pair)
    if (edit === undefined) return undefined
    edits.push(edit)
  }
  // From the end, so that no edit moves the text of another one; of several additions, the last one first.
  return edits
    .toReversed()
    .toSorted((a, b) => b.start - a.start)
    .reduce(
      (text, edit) =>
        text.slice(0, edit.start) + edit.text.replaceAll("\n", lineEnding) + text.slice(edit.end),
      yaml
    )
}

/**
 * Changes keys of the front matter of a text, and the body unless it is undefined; a key whose value is undefined is
 * removed. All other text stays as it is. Undefined if the text cannot be changed that way.
 */
export const updateText = (
  text: string,
  changes: ReadonlyMap<string, unknown>,
  body: string | undefined
): string | undefined => {
  const parts = splitText(text)
  if (parts === undefined) return undefined
  const { opening, yaml, closing, lineEnding } = parts
  const needsEnd = parts.body === "" || parts.body.endsWith("\n") || body?.endsWith("\n") === true
  const newBody =
    body === undefined ? parts.body : (body + (needsEnd ? "\n" : "")).replaceAll("\n", lineEnding)
  if (changes.size === 0) return opening + (yaml ?? "") + closing + newBody
  if (yaml === undefined) {
    const frontMatter = `---\n${stringify(Object.fromEntries(changes), writeOptions)}---\n`
    return opening + frontMatter.replaceAll("\n", lineEnding) + newBody
  }
  const newYaml = editYaml(yaml, changes, lineEnding)
  return newYaml === undefined ? undefined : opening + newYaml + closing + newBody
}
