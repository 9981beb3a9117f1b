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
  ArchiveVersion,
  type Fault
} from "../../application/Archive.ts"
import { type ExactNumber, isExactNumber, parseNumber, toDecimal } from "../../domain/Json.ts"

// A file of docs/prompts-as-files.md: front matter in YAML between two lines of `---`, then the body.

const { title: Text } = ArchivePrompt.fields
const { name: Name } = ArchiveFolder.fields

/** What the front matter of a prompt may say. */
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
  )
})
export type PromptFront = typeof PromptFront.Type

/** What the front matter of a fragment may say. */
export const FragmentFront = Schema.Struct({
  id: Schema.optionalKey(ArchiveFragment.fields.id),
  name: Schema.optionalKey(ArchiveFragment.fields.name)
})
export type FragmentFront = typeof FragmentFront.Type

const format = SchemaIssue.makeFormatterStandardSchemaV1()

const faultsOf = (path: string, issue: SchemaIssue.Issue): ReadonlyArray<Fault> =>
  format(issue).issues.map((issue) => ({
    path,
    message: [(issue.path ?? []).map(String).join("."), issue.message]
      .filter((text) => text !== "")
      .join(": ")
  }))

/** A file's front matter and body, as text. */
const split = (text: string): { readonly yaml: string; readonly body: string } | undefined => {
  const opening = /^\ufeff?---[ \t]*(\r?\n)/.exec(text)
  if (opening === null) return undefined
  const rest = text.slice(opening[0].length)
  const closing = /(?<![^\n])---[ \t]*(?:\r?\n|$)/.exec(rest)
  if (closing === null) return undefined
  const body = rest.slice(closing.index + closing[0].length)
  // Where git has turned line ends into Windows', they are not the author's.
  const unix = opening[1] === "\r\n" ? body.replaceAll("\r\n", "\n") : body
  return { yaml: rest.slice(0, closing.index), body: unix.endsWith("\n") ? unix.slice(0, -1) : unix }
}

/** The text of a number in YAML as PostgreSQL writes the number. */
const decimalOf = (source: string): string | undefined =>
  /^0[ox]/.test(source) ? String(BigInt(source)) : toDecimal(source)

const isOverrides = (node: unknown): boolean =>
  isPair(node) && isScalar(node.key) && node.key.value === "with"

/** Makes the numbers of overrides exact; a number that is a name becomes the text of the exact number. */
const restoreNumbers = (document: Document): void =>
  visit(document, {
    Scalar: (key, node, path) => {
      if (typeof node.value !== "number" || node.source === undefined || !path.some(isOverrides)) return
      const decimal = decimalOf(node.source)
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

const parseYaml = (path: string, yaml: string): Result.Result<unknown, ReadonlyArray<Fault>> => {
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

/** Reads a file's front matter and body; every fault in it is told. One line end at the end is not the body's. */
export const parseText = <Front>(
  front: Schema.Codec<Front, unknown>,
  path: string,
  text: string
): Result.Result<{ readonly front: Front; readonly body: string }, ReadonlyArray<Fault>> => {
  const parts = split(text)
  if (parts === undefined) {
    return Result.fail([{ path, message: "must begin with front matter: YAML between two lines of ---" }])
  }
  const yaml = parseYaml(path, parts.yaml)
  if (Result.isFailure(yaml)) return Result.fail(yaml.failure)
  const decoded = Schema.decodeUnknownResult(front, { errors: "all", onExcessProperty: "error" })(
    yaml.success
  )
  if (Result.isFailure(decoded)) return Result.fail(faultsOf(path, decoded.failure.issue))
  const body = Schema.decodeUnknownResult(Schema.Struct({ body: Text }))({ body: parts.body })
  if (Result.isFailure(body)) return Result.fail(faultsOf(path, body.failure.issue))
  return Result.succeed({ front: decoded.success, body: parts.body })
}

const writeOptions = {
  lineWidth: 0,
  aliasDuplicateObjects: false,
  customTags: (tags: Tags): Tags => [exactNumber, ...tags]
}

/** Writes what `parseText` reads. */
export const renderText = (front: PromptFront | FragmentFront, body: string): string =>
  `---\n${stringify(front, writeOptions)}---\n${body}\n`
