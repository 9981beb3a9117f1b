import { posix } from "node:path"
import { getSuccesses } from "effect/Array"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Order from "effect/Order"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { parseDocument, type YAMLParseError } from "yaml"
import { PromptType } from "../../domain/Prompt.ts"
import { fitsName, sizes } from "../../domain/Sizes.ts"
import { parseUuid } from "../../domain/Uuid.ts"
import { Folder, Fragment, makeList, PromptFragment, WorkspacePrompt } from "../../domain/Workspace.ts"
import type { Problem } from "../../domain/WorkspaceContent.ts"
import type { ContentState } from "./ContentState.ts"

// Reads the files of prompts and fragments: optional front matter in YAML between two lines of `---`, and a body.
// docs/prompts-as-files.md describes the format.

/** The texts of files by path. A path is relative to the directory and has slashes as separators. */
export type Texts = ReadonlyMap<string, string>

export const extension = ".md"

/**
 * A file that describes a prompt or a fragment. `file_id` is the id in the front matter, or null if there is none.
 * `parseFiles` returns states that refer to fragments by the names in the front matter. `pairWithFiles` returns states
 * that refer to fragments by their ids.
 */
export interface PromptFile {
  readonly path: string
  readonly file_id: string | null
  readonly state: ContentState
}

/**
 * An import or export of files failed, because files in the directory are invalid. Neither the workspace nor the files
 * changed. The path of a problem starts with the path of its file. `count` is the number of all problems.
 */
export class InvalidFiles extends Data.TaggedError("InvalidFiles")<{
  readonly problems: ReadonlyArray<Problem>
  readonly count: number
}> {
  constructor(problems: ReadonlyArray<Problem>, count = problems.length) {
    super({ problems, count })
  }
}

/** Returns the name by which front matter refers to a fragment: its path below `fragments/`, without the extension. */
export const toFragmentName = (path: string): string => path.slice(path.indexOf("/") + 1, -extension.length)

const decodeSegment = (segment: string): string =>
  Result.getOrElse(
    Result.try(() => decodeURIComponent(segment)),
    () => segment
  )

/** Returns the folder that the path of a prompt denotes, or null if the file is directly in `prompts/`. */
export const pathToFolder = (path: string): string | null => {
  const directory = posix.dirname(path).split("/").slice(1)
  return directory.length === 0 ? null : directory.map(decodeSegment).join("/")
}

/** A parsed value, or the problems of the file. */
type Parsed<A> = Result.Result<A, ReadonlyArray<Problem>>

/**
 * Splits a text into consecutive parts. `mark` is the byte order mark, if there is one. Without front matter, `opening`
 * is undefined. If the first line ends with CRLF, converts all line endings to LF before the split, because Git can
 * convert LF to CRLF.
 */
export const splitText = (text: string) => {
  const hasWindowsLineEndings = /^[^\n]*\r\n/.test(text)
  const pattern = /^(\ufeff?)(?:(---[ \t]*\n)(.*?)((?<![^\n])---[ \t]*(?:\r?\n|$)))?(.*)$/s
  const unixText = hasWindowsLineEndings ? text.replaceAll("\r\n", "\n") : text
  const [, mark = "", opening, yaml = "", closing = "", body = ""] = pattern.exec(unixText) ?? []
  return { mark, opening, yaml, closing, body, hasWindowsLineEndings }
}

export const yamlOptions = {
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

/** Parses a text into front matter and body. One trailing newline is not part of the body. */
const parseText = (
  path: string,
  text: string
): Parsed<{ readonly frontMatter: unknown; readonly body: string }> => {
  const { opening, yaml, body } = splitText(text)
  const fail = (message: string) => Result.fail([{ path: `${path}:1`, message }])
  if (opening === undefined && /^---[ \t]*\n/.test(body))
    return fail("the front matter has no end: add a line of ---")
  // Blank lines precede the line of `---` that opens the front matter.
  if (opening === undefined && /^\s+---[ \t]*\r?(?:\n|$)/.test(body))
    return fail("the line of --- that opens the front matter must be the first line: remove what precedes it")
  return Result.map(parseYaml(path, yaml), (frontMatter) => ({ frontMatter, body: body.replace(/\n$/, "") }))
}

/** Makes a key of front matter optional, with a default value. */
const withDefault = <A>(schema: Schema.Codec<A, A>, value: A) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** Makes the schema of a map with these keys and no other keys. */
const makeMap = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotate({
    messageUnexpectedKey: `unknown key; the keys are ${Object.keys(fields).join(", ")}`
  })

/** Makes the schema of the id in a file: a UUID, or an earlier path of the file from which the id was derived. */
const makeId = (folder: "prompts" | "fragments") =>
  Schema.String.check(
    Schema.makeFilter((id) =>
      parseUuid(id) !== undefined || (id.startsWith(`${folder}/`) && id.endsWith(extension))
        ? undefined
        : 'must be a UUID, such as "6f1f0c2e-6f6e-4a57-9d9e-0b6f2f1b7a51", or the earlier path of a file that was moved'
    )
  )

const { fields } = WorkspacePrompt

const PromptFrontMatter = makeMap({
  id: Schema.optionalKey(makeId("prompts")),
  title: Schema.optionalKey(fields.title),
  /** The name of the folder, or null for no folder. Absent if the path names the folder. */
  folder: Schema.optionalKey(
    Schema.NullOr(fields.description).annotate({ message: "must be a text, or null for no folder" })
  ),
  description: withDefault(fields.description, ""),
  type: withDefault(
    fields.prompt_type.annotate({ message: `must be one of ${PromptType.literals.join(", ")}` }),
    "user"
  ),
  model: withDefault(fields.target_model, ""),
  intent: withDefault(fields.intent, ""),
  tags: withDefault(makeList(Folder.fields.name, sizes.promptTags), []),
  favorite: withDefault(Schema.Boolean, false),
  sort_order: withDefault(fields.sort_order, 0),
  fragments: withDefault(
    makeList(
      makeMap({
        fragment: Schema.String,
        with: Schema.optionalKey(PromptFragment.fields.variable_overrides)
      }),
      sizes.promptFragments
    ),
    []
  )
})

const FragmentFrontMatter = makeMap({
  id: Schema.optionalKey(makeId("fragments")),
  name: Schema.optionalKey(Fragment.fields.name)
})

/** Messages for values of a wrong type, by the expected type. A message states the rule and, if needed, the remedy. */
const expectedValues: Readonly<Record<string, string>> = {
  String: 'must be a text: put quotes around the value, such as "12"',
  Boolean: "must be true or false, without quotes",
  Number: "must be a whole number without quotes, such as 1",
  Arrays: "must be a list, such as [production, draft]",
  Objects: 'must have lines with a key, a colon and a space, such as "title: Summary"'
}

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1({
  leafHook: (issue) =>
    (issue._tag === "InvalidType" && expectedValues[issue.ast._tag]) || SchemaIssue.defaultLeafHook(issue)
})

/** Parses a text, and decodes its front matter and its body. */
const decodeText = <A>(schema: Schema.Codec<A, unknown>, path: string, text: string) =>
  Result.flatMap(parseText(path, text), (parsed) =>
    Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })(parsed).pipe(
      Result.mapError(({ issue }) =>
        formatIssue(issue).issues.map(({ path: keys = [], message }): Problem => {
          const name = keys.filter((key) => key !== "frontMatter").join(".")
          return { path, message: name === "" ? message : `${name}: ${message}` }
        })
      )
    )
  )

const PromptText = Schema.Struct({ frontMatter: PromptFrontMatter, body: fields.current_content })
const FragmentText = Schema.Struct({ frontMatter: FragmentFrontMatter, body: Fragment.fields.content })

/** Returns the id in front matter, with the letters of a UUID in lowercase; null if there is no id. */
const toFileId = (id: string | undefined): string | null => (id === undefined ? null : (parseUuid(id) ?? id))

const parseFragment = (path: string, text: string): Parsed<PromptFile> =>
  Result.map(decodeText(FragmentText, path, text), ({ frontMatter: { id, name }, body }) => ({
    path,
    file_id: toFileId(id),
    state: { kind: "fragment", name: name ?? posix.basename(path, extension), content: body }
  }))

const parsePrompt = (path: string, text: string): Parsed<PromptFile> =>
  Result.gen(function* () {
    const { frontMatter, body } = yield* decodeText(PromptText, path, text)
    const folder = frontMatter.folder === undefined ? pathToFolder(path) : frontMatter.folder
    // `fitsName` counts code points, as PostgreSQL does, so every folder that was exported can be imported.
    if (folder !== null && !fitsName(folder))
      return yield* Result.fail([
        { path, message: `the folder's name must be at most ${sizes.nameLength} characters` }
      ])
    const { id, title, type, model, favorite, tags, fragments, ...others } = frontMatter
    const state = {
      ...others,
      kind: "prompt",
      folder,
      title: title ?? posix.basename(path, extension),
      current_content: body,
      prompt_type: type,
      target_model: model,
      is_favorite: favorite,
      tags: [...new Set(tags)].sort(),
      fragments: fragments.map(({ fragment: fragment_id, with: variable_overrides = {} }) => ({
        fragment_id,
        variable_overrides
      }))
    } as const
    return { path, file_id: toFileId(id), state }
  })

export const parseFile = (path: string, text: string): Parsed<PromptFile> =>
  path.startsWith("fragments/") ? parseFragment(path, text) : parsePrompt(path, text)

/** Returns a problem for each fragment file that a prompt refers to and that does not exist. */
const findMissingFragments = ({ path, state }: PromptFile, texts: Texts): ReadonlyArray<Problem> =>
  (state.kind === "prompt" ? state.fragments : [])
    .map(({ fragment_id }) => `fragments/${fragment_id}${extension}`)
    .filter((fragmentPath) => !texts.has(fragmentPath))
    .map((fragmentPath) => ({ path, message: `fragments: there is no file ${fragmentPath}` }))

/** Parses files, and sorts them by path. Fails with the problems of all files, if there are any. */
export const parseFiles = (texts: Texts): Result.Result<ReadonlyArray<PromptFile>, InvalidFiles> => {
  const sorted = [...texts].sort(Order.mapInput(Order.String, ([path]) => path))
  const parsed = sorted.map(([path, text]) => parseFile(path, text))
  const problems = parsed.flatMap((result) =>
    Result.isFailure(result) ? result.failure : findMissingFragments(result.success, texts)
  )
  if (problems.length > 0) return Result.fail(new InvalidFiles(problems))
  return Result.succeed(getSuccesses(parsed))
}
