import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import {
  type Document,
  isPair,
  isScalar,
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
} from "../../../application/formats/Archive.ts"
import { type ExactNumber, isExactNumber, parseNumber, toDecimal } from "../../../domain/Json.ts"
import type { Problem } from "../../../domain/Problem.ts"

// The text of a prompt or a fragment: front matter in YAML between two lines of `---`, then the body. The format is
// described in docs/prompts-as-files.md.

const { title: Text } = ArchivePrompt.fields
const { name: Name } = ArchiveFolder.fields

/** The front matter of a prompt. */
export const PromptFront = Schema.Struct({
  id: Schema.optionalKey(ArchivePrompt.fields.id),
  title: Schema.optionalKey(Text),
  description: Schema.optionalKey(Text),
  type: Schema.optionalKey(ArchivePrompt.fields.prompt_type),
  model: Schema.optionalKey(Text),
  intent: Schema.optionalKey(Text),
  tags: Schema.optionalKey(Schema.Array(Name)),
  favorite: Schema.optionalKey(Schema.Boolean),
  sort_order: Schema.optionalKey(ArchivePrompt.fields.sort_order),
  fragments: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        fragment: Schema.String,
        with: Schema.optionalKey(ArchiveVersion.fields.metadata)
      })
    )
  ),
  /** The name of the folder, if the path cannot express it. */
  folder: Schema.optionalKey(Text)
})
export type PromptFront = typeof PromptFront.Type

/** The front matter of a fragment. */
export const FragmentFront = Schema.Struct({
  id: Schema.optionalKey(ArchiveFragment.fields.id),
  name: Schema.optionalKey(ArchiveFragment.fields.name)
})
export type FragmentFront = typeof FragmentFront.Type

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const toProblems = (path: string, issue: SchemaIssue.Issue): ReadonlyArray<Problem> =>
  format(issue).issues.map((issue) => ({
    path,
    message: [(issue.path ?? []).map(String).join("."), issue.message]
      .filter((text) => text !== "")
      .join(": ")
  }))

/** Splits a text into front matter and body. Undefined if it has no front matter. */
const splitText = (text: string): { readonly yaml: string; readonly body: string } | undefined => {
  const opening = /^\ufeff?---[ \t]*(\r?\n)/.exec(text)
  if (opening === null) return undefined
  const rest = text.slice(opening[0].length)
  const closing = /(?<![^\n])---[ \t]*(?:\r?\n|$)/.exec(rest)
  if (closing === null) return undefined
  const body = rest.slice(closing.index + closing[0].length)
  // Git may have converted the line endings to CRLF; they are not part of the content.
  const content = opening[1] === "\r\n" ? body.replaceAll("\r\n", "\n") : body
  return { yaml: rest.slice(0, closing.index), body: content.endsWith("\n") ? content.slice(0, -1) : content }
}

/** Converts the text of a number in YAML to the decimal that PostgreSQL prints. Undefined if it is not a number. */
const toDecimalText = (source: string): string | undefined =>
  /^0[ox]/.test(source) ? String(BigInt(source)) : toDecimal(source)

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
 * Parses a text into front matter and body. Fails with every problem of the text. One trailing newline is not part of the
 * body.
 */
export const parseText = <Front>(
  front: Schema.Codec<Front, unknown>,
  path: string,
  text: string
): Result.Result<{ readonly front: Front; readonly body: string }, ReadonlyArray<Problem>> => {
  const parts = splitText(text)
  if (parts === undefined) {
    return Result.fail([{ path, message: "must begin with front matter: YAML between two lines of ---" }])
  }
  const yaml = parseYaml(path, parts.yaml)
  if (Result.isFailure(yaml)) return Result.fail(yaml.failure)
  const decoded = Schema.decodeUnknownResult(front, { errors: "all", onExcessProperty: "error" })(
    yaml.success
  )
  if (Result.isFailure(decoded)) return Result.fail(toProblems(path, decoded.failure.issue))
  const body = Schema.decodeUnknownResult(Schema.Struct({ body: Text }))({ body: parts.body })
  if (Result.isFailure(body)) return Result.fail(toProblems(path, body.failure.issue))
  return Result.succeed({ front: decoded.success, body: parts.body })
}

const writeOptions = {
  lineWidth: 0,
  aliasDuplicateObjects: false,
  customTags: (tags: Tags): Tags => [exactNumber, ...tags]
}

/** Renders the text that `parseText` parses. */
export const renderText = (front: PromptFront | FragmentFront, body: string): string =>
  `---\n${stringify(front, writeOptions)}---\n${body}\n`
