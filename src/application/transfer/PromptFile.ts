import { posix } from "node:path"
import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { type ContentState, getContent } from "./ContentState.ts"
import type { Problem } from "../../domain/WorkspaceContent.ts"
import { fitsName, sizes } from "../../domain/Sizes.ts"
import {
  Folder,
  Fragment,
  limitFragments,
  limitTags,
  PromptFragment,
  WorkspacePrompt
} from "../../domain/Workspace.ts"
import { parseUuid } from "../../domain/Prompt.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { describeIssue } from "./FrontMatterErrors.ts"
import { type FrontMatter, parseText, renderText, updateText } from "./FrontMatter.ts"
import { deriveId, extension, pathToFolder, toFragmentPath } from "./PromptPaths.ts"

/** The texts of files by path. A path is relative to the directory and has slashes as separators. */
export type Texts = ReadonlyMap<string, string>

/**
 * A file that describes a prompt or a fragment. `file_id` is the id in the front matter, or null if there is none. `id`
 * is derived from the workspace and `file_id`, or from the workspace and the path if there is no `file_id`. A `file_id`
 * that is an earlier path of the file therefore gives the id that the file had at that path. A comparison replaces `id`
 * with `file_id` if the workspace has a prompt or fragment with this id.
 */
export interface ContentFile {
  readonly id: string
  readonly path: string
  readonly file_id: string | null
  readonly state: ContentState
}

/**
 * An import of files, or an export into their directory, failed because files are invalid. Neither the workspace nor
 * the files changed. `problems` contains the first problems, and `count` is the number of all problems. The path of a
 * problem starts with the path of its file.
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

/** The id in a file: a UUID, or an earlier path of the file, from which the file without an id got its id. */
const makeFileId = (folder: "prompts" | "fragments") =>
  Schema.String.check(
    Schema.makeFilter(
      (id) => parseUuid(id) !== undefined || (id.startsWith(`${folder}/`) && id.endsWith(extension))
    )
  )

/** Returns the id in front matter, with the letters of a UUID in lowercase; null if there is no id. */
const toFileId = (id: string | undefined): string | null => (id === undefined ? null : (parseUuid(id) ?? id))

const PromptFrontMatter = Schema.Struct({
  id: Schema.optionalKey(makeFileId("prompts")),
  title: Schema.optionalKey(WorkspacePrompt.fields.title),
  description: Schema.optionalKey(WorkspacePrompt.fields.description),
  type: Schema.optionalKey(WorkspacePrompt.fields.prompt_type),
  model: Schema.optionalKey(WorkspacePrompt.fields.target_model),
  intent: Schema.optionalKey(WorkspacePrompt.fields.intent),
  tags: Schema.optionalKey(limitTags(Folder.fields.name)),
  favorite: Schema.optionalKey(Schema.Boolean),
  sort_order: Schema.optionalKey(WorkspacePrompt.fields.sort_order),
  fragments: Schema.optionalKey(
    limitFragments(
      Schema.Struct({
        fragment: Schema.String,
        with: Schema.optionalKey(PromptFragment.fields.variable_overrides)
      })
    )
  ),
  /**
   * The name of the folder, or null for no folder. Absent if the path of the file names the folder. `parsePrompt`
   * checks the length of the name, whether the name comes from this field or from the path.
   */
  folder: Schema.optionalKey(Schema.NullOr(WorkspacePrompt.fields.description))
})

const FragmentFrontMatter = Schema.Struct({
  id: Schema.optionalKey(makeFileId("fragments")),
  name: Schema.optionalKey(Fragment.fields.name)
})

const withBody = <A>(frontMatter: Schema.Codec<A, unknown>) =>
  Schema.Struct({ frontMatter, body: WorkspacePrompt.fields.current_content })

const PromptText = withBody(PromptFrontMatter)
const FragmentText = withBody(FragmentFrontMatter)

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/**
 * Parses a text, and decodes its front matter. Fails with all problems of the YAML, or if there are none, with all
 * problems of the decoding.
 */
const decodeText = <A>(schema: Schema.Codec<A, unknown>, path: string, text: string) =>
  Result.flatMap(parseText(path, text), (parsed) =>
    Result.mapError(
      Schema.decodeUnknownResult(schema, { errors: "all", onExcessProperty: "error" })(parsed),
      ({ issue }) =>
        formatIssue(issue).issues.map(({ path: keys = [], message }): Problem => {
          const names = keys.map(String)
          const isFrontMatter = names[0] === "frontMatter"
          return {
            path,
            message: isFrontMatter
              ? describeIssue(names.slice(1), message, parsed.frontMatter)
              : `${names.join(".")}: ${message}`
          }
        })
    )
  )

type ParsedText = Result.Result<Pick<ContentFile, "file_id" | "state">, ReadonlyArray<Problem>>

const parseFragment = (path: string, text: string): ParsedText =>
  Result.map(decodeText(FragmentText, path, text), ({ frontMatter, body }) => ({
    file_id: toFileId(frontMatter.id),
    state: { kind: "fragment", name: frontMatter.name ?? posix.basename(path, extension), content: body }
  }))

/**
 * Returns the id of the fragment with this name. Returns an empty string if the fragment's file has problems, and
 * `undefined` if the fragment has no file.
 */
type FindFragment = (name: string) => string | undefined

const parsePrompt = (path: string, text: string, findFragment: FindFragment): ParsedText =>
  Result.flatMap(decodeText(PromptText, path, text), ({ frontMatter, body }) => {
    const folder = frontMatter.folder === undefined ? pathToFolder(path) : frontMatter.folder
    const problems: Array<Problem> = []
    const fragments = (frontMatter.fragments ?? []).map(({ fragment, with: variable_overrides = {} }) => {
      const fragment_id = findFragment(fragment)
      if (fragment_id === undefined)
        problems.push({ path, message: `fragments: there is no file ${toFragmentPath(fragment)}` })
      return { fragment_id: fragment_id ?? "", variable_overrides }
    })
    // `fitsName` counts code points, as PostgreSQL does, so every folder that was exported can be imported.
    if (folder !== null && !fitsName(folder))
      problems.push({ path, message: `the folder's name must be at most ${sizes.nameLength} characters` })
    if (problems.length > 0) return Result.fail(problems)
    return Result.succeed({
      file_id: toFileId(frontMatter.id),
      state: {
        kind: "prompt",
        folder,
        title: frontMatter.title ?? posix.basename(path, extension),
        description: frontMatter.description ?? "",
        current_content: body,
        prompt_type: frontMatter.type ?? "user",
        target_model: frontMatter.model ?? "",
        intent: frontMatter.intent ?? "",
        is_favorite: frontMatter.favorite ?? false,
        sort_order: frontMatter.sort_order ?? 0,
        tags: [...new Set(frontMatter.tags)].sort(),
        fragments
      }
    })
  })

const parseState = (path: string, text: string, findFragment: FindFragment): ParsedText =>
  path.startsWith("fragments/") ? parseFragment(path, text) : parsePrompt(path, text, findFragment)

/**
 * Parses the files of a workspace, and sorts them by path. Fails with the problems of all files, if there are any.
 */
export const parsePromptFiles = (
  workspace: WorkspaceId,
  texts: Texts
): Result.Result<ReadonlyArray<ContentFile>, InvalidFiles> => {
  const files: Array<ContentFile> = []
  const problems: Array<Problem> = []
  const ids = new Map<string, string>()
  // A fragment whose file has problems is not reported as missing.
  const findFragment: FindFragment = (name) => {
    const path = toFragmentPath(name)
    return ids.get(path) ?? (texts.has(path) ? "" : undefined)
  }
  // Fragments come first, so that prompts find their ids: `fragments/` sorts before `prompts/`.
  for (const [path, text] of [...texts].sort(([a], [b]) => (a < b ? -1 : 1))) {
    const parsed = parseState(path, text, findFragment)
    if (Result.isFailure(parsed)) {
      problems.push(...parsed.failure)
      continue
    }
    const id = deriveId(workspace, parsed.success.file_id ?? path)
    ids.set(path, id)
    files.push({ id, path, ...parsed.success })
  }
  return problems.length > 0 ? Result.fail(InvalidFiles(problems)) : Result.succeed(files)
}

/** The name by which front matter refers to a fragment, by the id of the fragment. */
export type FragmentNames = ReadonlyMap<string, string>

/**
 * Converts a file to its front matter. An empty, zero or false value is undefined, except for the title or name. A
 * folder that the path denotes is also undefined.
 */
const toFrontMatter = (
  { path, file_id, state }: Omit<ContentFile, "id">,
  fragmentNames: FragmentNames
): FrontMatter => {
  const id = file_id ?? undefined
  if (state.kind === "fragment") return { id, name: state.name }
  const fragments = state.fragments.map(({ fragment_id, variable_overrides }) => ({
    fragment: fragmentNames.get(fragment_id) ?? fragment_id,
    with: Object.keys(variable_overrides).length === 0 ? undefined : variable_overrides
  }))
  return {
    id,
    title: state.title,
    folder: pathToFolder(path) === state.folder ? undefined : state.folder,
    description: state.description || undefined,
    type: state.prompt_type,
    model: state.target_model || undefined,
    intent: state.intent || undefined,
    tags: state.tags.length === 0 ? undefined : state.tags,
    favorite: state.is_favorite || undefined,
    sort_order: state.sort_order || undefined,
    fragments: fragments.length === 0 ? undefined : fragments
  }
}

/** Renders a state as the text of a file, for comparisons. If the prompt is in a folder, the text names the folder. */
export const renderState = (state: ContentState, fragmentNames: FragmentNames): string =>
  renderText(toFrontMatter({ path: "prompts/", file_id: null, state }, fragmentNames), getContent(state))

/** Renders the text of a new file. */
export const renderFile = (file: ContentFile, fragmentNames: FragmentNames): string =>
  renderText(toFrontMatter(file, fragmentNames), getContent(file.state))

/**
 * Changes the text of an existing file so that it describes `state`. Changes only what differs, so that formatting and
 * comments stay. If this is not possible, for example because the new content starts with `---`, renders the whole text
 * again.
 */
export const updateFile = (
  before: ContentFile,
  text: string,
  state: ContentState,
  fragmentNames: FragmentNames
): string => {
  const after = { ...before, state }
  const frontMatter = toFrontMatter(after, fragmentNames)
  const content = getContent(state)
  const body = getContent(before.state) === content ? undefined : content
  const updated = updateText(text, toFrontMatter(before, fragmentNames), frontMatter, body)
  const describesState = (text: string): boolean => {
    // The parsed state refers to fragments by name.
    const parsed = parseState(before.path, text, (name) => name)
    if (Result.isFailure(parsed) || getContent(parsed.success.state) !== content) return false
    return Equal.equals(toFrontMatter({ path: before.path, ...parsed.success }, new Map()), frontMatter)
  }
  return updated !== undefined && describesState(updated) ? updated : renderFile(after, fragmentNames)
}

/**
 * Returns the text that a file would have if it described the state `before` instead of the state `after`, which it
 * describes. Lines that describe both states stay as they are.
 */
export const renderEarlierFile = (
  path: string,
  text: string,
  { before, after }: { readonly before: ContentState; readonly after: ContentState },
  fragmentNames: FragmentNames
): string => {
  const parsed = parseState(path, text, (name) => name)
  const file_id = Result.isSuccess(parsed) ? parsed.success.file_id : null
  return updateFile({ id: "", path, file_id, state: after }, text, before, fragmentNames)
}
