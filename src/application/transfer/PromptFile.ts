import { createHash } from "node:crypto"
import { posix } from "node:path"
import * as Effect from "effect/Effect"
import { isObject } from "effect/Predicate"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { parseUuid, PromptType } from "../../domain/Prompt.ts"
import { fitsName, sizes } from "../../domain/Sizes.ts"
import {
  Folder,
  Fragment,
  limitFragments,
  limitTags,
  PromptFragment,
  WorkspacePrompt
} from "../../domain/Workspace.ts"
import type { ImportedState, Problem } from "../../domain/WorkspaceContent.ts"
import { type Parsed, parseText } from "./FrontMatter.ts"

// Reads the files of prompts and fragments. docs/prompts-as-files.md describes their format.

/** The texts of files by path. A path is relative to the directory and has slashes as separators. */
export type Texts = ReadonlyMap<string, string>

export const extension = ".md"

/** The fields of a prompt that its file states unchanged. */
export const promptFields = [
  "title",
  "description",
  "current_content",
  "prompt_type",
  "target_model",
  "intent",
  "is_favorite",
  "sort_order"
] as const

/** The part of a prompt's state that a file describes. */
export interface PromptState extends Pick<WorkspacePrompt, (typeof promptFields)[number]> {
  readonly kind: "prompt"
  /** The name of the folder; null if the prompt is in no folder. */
  readonly folder: string | null
  /** The names of the tags, sorted and without duplicates. */
  readonly tags: ReadonlyArray<string>
  /** The fragments to append, in their order. */
  readonly fragments: ReadonlyArray<Pick<PromptFragment, "fragment_id" | "variable_overrides">>
}

/** The state of a fragment: all fields except its id. */
interface FragmentState extends Omit<Fragment, "id"> {
  readonly kind: "fragment"
}

export type ContentState = PromptState | FragmentState

/**
 * A file that describes a prompt or a fragment. `file_id` is the id in the front matter, or null if there is none.
 * `parseFiles` returns states that refer to fragments by the names in the front matter. `compare` returns states that
 * refer to fragments by their ids.
 */
export interface PromptFile {
  readonly path: string
  readonly file_id: string | null
  readonly state: ContentState
}

/**
 * An import of files, or an export into their directory, failed because files are invalid. Neither the workspace nor
 * the files changed. The path of a problem starts with the path of its file. `count` is the number of all problems.
 */
export interface InvalidFiles {
  readonly _tag: "InvalidFiles"
  readonly problems: ReadonlyArray<Problem>
  readonly count: number
}
export const InvalidFiles = (problems: ReadonlyArray<Problem>, count = problems.length): InvalidFiles => ({
  _tag: "InvalidFiles",
  problems,
  count
})

/**
 * Returns the key of a prompt or fragment. The key contains the kind, because a prompt and a fragment may have the same
 * id.
 */
export const toKey = ({ kind, id }: Pick<ImportedState, "kind" | "id">): string => `${kind} ${id}`

export const getName = (state: ContentState): string => (state.kind === "prompt" ? state.title : state.name)

/** Returns the content of a prompt or fragment, which is the body of its file. */
export const getContent = (state: ContentState): string =>
  state.kind === "prompt" ? state.current_content : state.content

/** Sorts the members of an object by name, because PostgreSQL does not keep the member order of free-form JSON. */
const sortMembers = (_: string, value: unknown): unknown =>
  isObject(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value

/**
 * Returns the SHA-256 hash of a state in hexadecimal digits. Equal states have equal hashes, whether they come from a
 * file or from the database.
 */
export const hashState = (state: ContentState): string =>
  createHash("sha256").update(JSON.stringify(state, sortMembers)).digest("hex")

/** Returns the name by which front matter refers to a fragment: its path below `fragments/`, without the extension. */
export const toFragmentName = (path: string): string => path.slice(path.indexOf("/") + 1, -extension.length)

/** Returns the path of the fragment with a name. */
const toFragmentPath = (name: string): string => `fragments/${name}${extension}`

const decodeSegment = (segment: string): string => {
  try {
    return decodeURIComponent(segment)
  } catch {
    return segment
  }
}

/** Returns the folder that the path of a prompt denotes, or null if the file is directly in `prompts/`. */
export const pathToFolder = (path: string): string | null => {
  const directory = posix.dirname(path).split("/").slice(1)
  return directory.length === 0 ? null : directory.map(decodeSegment).join("/")
}

/** A key of front matter that may be absent, with its default value. */
const withDefault = <A>(schema: Schema.Codec<A, A>, value: A) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

/** A map with these keys and no others. */
const makeMap = <Fields extends Schema.Struct.Fields>(fields: Fields) =>
  Schema.Struct(fields).annotate({
    messageUnexpectedKey: `unknown key; the keys are ${Object.keys(fields).join(", ")}`
  })

/** The id in a file: a UUID, or an earlier path of the file, from which the file without an id got its id. */
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
  tags: withDefault(limitTags(Folder.fields.name), []),
  favorite: withDefault(Schema.Boolean, false),
  sort_order: withDefault(fields.sort_order, 0),
  fragments: withDefault(
    limitFragments(
      makeMap({ fragment: Schema.String, with: Schema.optionalKey(PromptFragment.fields.variable_overrides) })
    ),
    []
  )
})

const FragmentFrontMatter = makeMap({
  id: Schema.optionalKey(makeId("fragments")),
  name: Schema.optionalKey(Fragment.fields.name)
})

/** What to write instead of a value of another type. */
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
  Result.flatMap(decodeText(PromptText, path, text), ({ frontMatter, body }): Parsed<PromptFile> => {
    const folder = frontMatter.folder === undefined ? pathToFolder(path) : frontMatter.folder
    // `fitsName` counts code points, as PostgreSQL does, so every folder that was exported can be imported.
    if (folder !== null && !fitsName(folder))
      return Result.fail([
        { path, message: `the folder's name must be at most ${sizes.nameLength} characters` }
      ])
    return Result.succeed({
      path,
      file_id: toFileId(frontMatter.id),
      state: {
        kind: "prompt",
        folder,
        title: frontMatter.title ?? posix.basename(path, extension),
        description: frontMatter.description,
        current_content: body,
        prompt_type: frontMatter.type,
        target_model: frontMatter.model,
        intent: frontMatter.intent,
        is_favorite: frontMatter.favorite,
        sort_order: frontMatter.sort_order,
        tags: [...new Set(frontMatter.tags)].sort(),
        fragments: frontMatter.fragments.map(({ fragment, with: variable_overrides = {} }) => ({
          fragment_id: fragment,
          variable_overrides
        }))
      }
    })
  })

export const parseFile = (path: string, text: string): Parsed<PromptFile> =>
  path.startsWith("fragments/") ? parseFragment(path, text) : parsePrompt(path, text)

/** Returns a problem for each fragment of a prompt that has no file. */
const findMissingFragments = ({ path, state }: PromptFile, texts: Texts): ReadonlyArray<Problem> =>
  (state.kind === "prompt" ? state.fragments : [])
    .map(({ fragment_id }) => toFragmentPath(fragment_id))
    .filter((fragmentPath) => !texts.has(fragmentPath))
    .map((fragmentPath) => ({ path, message: `fragments: there is no file ${fragmentPath}` }))

/** Parses files, and sorts them by path. Fails with the problems of all files, if there are any. */
export const parseFiles = (texts: Texts): Result.Result<ReadonlyArray<PromptFile>, InvalidFiles> => {
  const files: Array<PromptFile> = []
  const problems: Array<Problem> = []
  for (const [path, text] of [...texts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const parsed = parseFile(path, text)
    // A file may have more problems than a call may have arguments.
    if (Result.isFailure(parsed)) for (const problem of parsed.failure) problems.push(problem)
    else {
      files.push(parsed.success)
      problems.push(...findMissingFragments(parsed.success, texts))
    }
  }
  return problems.length > 0 ? Result.fail(InvalidFiles(problems)) : Result.succeed(files)
}
