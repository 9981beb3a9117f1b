import { posix } from "node:path"
import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import type { Problem } from "../../../../domain/Problem.ts"
import {
  type FragmentFile,
  type FragmentState,
  InvalidFiles,
  type PromptFile,
  type PromptFiles,
  type PromptState,
  toFragmentState,
  toPromptState
} from "../../../../application/formats/files/PromptFiles.ts"
import type { PromptId } from "../../../../domain/Prompt.ts"
import { fitsName, sizes } from "../../../../domain/Sizes.ts"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { FragmentFrontMatter, parseText, PromptFrontMatter, renderText, updateText } from "./FrontMatter.ts"
import { deriveId, extension, fragmentName, makeHasFolderInPath, pathToFolder } from "./PromptPaths.ts"

/** The name by which front matter refers to each fragment, by the fragment's id. */
type FragmentNames = ReadonlyMap<string, string>

/** Converts a prompt to its front matter. Values that are the default are left out, and a folder that is undefined. */
const toFrontMatter = (
  state: PromptState,
  file_id: string | null,
  folder: string | null | undefined,
  fragmentNames: FragmentNames
): PromptFrontMatter => ({
  ...(file_id === null ? {} : { id: file_id as PromptId }),
  title: state.title,
  ...(folder === undefined ? {} : { folder }),
  ...(state.description === "" ? {} : { description: state.description }),
  type: state.prompt_type,
  ...(state.target_model === "" ? {} : { model: state.target_model }),
  ...(state.intent === "" ? {} : { intent: state.intent }),
  ...(state.tags.length === 0 ? {} : { tags: state.tags }),
  ...(state.is_favorite ? { favorite: true } : {}),
  ...(state.sort_order === 0 ? {} : { sort_order: state.sort_order }),
  ...(state.fragments.length === 0
    ? {}
    : {
        fragments: state.fragments.map(({ fragment_id, variable_overrides }) => ({
          fragment: fragmentNames.get(fragment_id) ?? fragment_id,
          ...(Object.keys(variable_overrides).length === 0 ? {} : { with: variable_overrides })
        }))
      })
})

/** Converts a fragment to its front matter. */
const toFragmentFrontMatter = ({ file_id, name }: FragmentFile): FragmentFrontMatter => ({
  ...(file_id === null ? {} : { id: file_id }),
  name
})

/** Renders the state of a prompt as the text of a file, for comparisons. */
export const renderPromptState = (state: PromptState, fragmentPaths: ReadonlyMap<string, string>): string => {
  const fragmentNames = new Map([...fragmentPaths].map(([id, path]) => [id, fragmentName(path)]))
  const frontMatter = toFrontMatter(state, null, state.folder ?? undefined, fragmentNames)
  return renderText(frontMatter, state.current_content)
}

/** Renders the state of a fragment as the text of a file, for comparisons. */
export const renderFragmentState = ({ name, content }: FragmentState): string => renderText({ name }, content)

/** Returns the changes between two front matters, by key; undefined for a key that is removed. */
const compareFrontMatter = (
  before: PromptFrontMatter | FragmentFrontMatter,
  after: PromptFrontMatter | FragmentFrontMatter
): ReadonlyMap<string, unknown> => {
  const [old, updated] = [new Map(Object.entries(before)), new Map(Object.entries(after))]
  const keys = new Set([...old.keys(), ...updated.keys()])
  return new Map(
    [...keys]
      .filter((key) => !Equal.equals(old.get(key), updated.get(key)))
      .map((key) => [key, updated.get(key)])
  )
}

/** Renders the texts of a directory's files, and changes existing texts as little as possible. */
const makeRenderer = (files: PromptFiles) => {
  const fragmentNames: FragmentNames = new Map(
    files.fragments.map(({ id, path }) => [id, fragmentName(path)])
  )
  const fragmentIds = new Map([...fragmentNames].map(([id, name]) => [name, id]))
  const hasFolderInPath = makeHasFolderInPath(files.prompts)

  const toFileFrontMatter = (file: PromptFile): PromptFrontMatter =>
    toFrontMatter(file, file.file_id, hasFolderInPath(file) ? undefined : file.folder, fragmentNames)
  const renderPrompt = (file: PromptFile): string => renderText(toFileFrontMatter(file), file.current_content)
  const renderFragment = (file: FragmentFile): string => renderText(toFragmentFrontMatter(file), file.content)

  return {
    renderPrompt,
    renderFragment,
    /** Changes the text of a prompt's file, which describes `before`. Returns the same text if nothing changes. */
    updatePrompt: (text: string, before: PromptFile, after: PromptFile): string => {
      const [old, updated] = [toPromptState(before), toPromptState(after)]
      if (Equal.equals(old, updated)) return text
      const changed = updateText(
        text,
        compareFrontMatter(
          toFileFrontMatter({ ...before, ...old }),
          toFileFrontMatter({ ...after, ...updated })
        ),
        before.current_content === after.current_content ? undefined : after.current_content
      )
      const parsed =
        changed === undefined ? undefined : parsePrompt(after.id, after.path, changed, fragmentIds)
      return changed !== undefined &&
        parsed?.file !== undefined &&
        Equal.equals(toPromptState(parsed.file), updated)
        ? changed
        : renderPrompt(after)
    },
    /** Changes the text of a fragment's file, which describes `before`. Returns the same text if nothing changes. */
    updateFragment: (text: string, before: FragmentFile, after: FragmentFile): string => {
      const updated = toFragmentState(after)
      if (Equal.equals(toFragmentState(before), updated)) return text
      const changed = updateText(
        text,
        compareFrontMatter(toFragmentFrontMatter(before), toFragmentFrontMatter(after)),
        before.content === after.content ? undefined : after.content
      )
      const parsed = changed === undefined ? undefined : parseFragment(after.id, after.path, changed)
      return changed !== undefined &&
        parsed?.file !== undefined &&
        Equal.equals(toFragmentState(parsed.file), updated)
        ? changed
        : renderFragment(after)
    }
  }
}

/** Renders the text of each file, by its path. */
export const renderFiles = (files: PromptFiles): ReadonlyMap<string, string> => {
  const { renderPrompt, renderFragment } = makeRenderer(files)
  return new Map([
    ...files.fragments.map((file) => [file.path, renderFragment(file)] as const),
    ...files.prompts.map((file) => [file.path, renderPrompt(file)] as const)
  ])
}

/**
 * Returns the texts of files that are new or that differ from their existing text, by path. An existing text is
 * changed only where its file differs, so that its formatting and comments stay.
 *
 * @param before the files that the existing texts describe, matched with the workspace
 * @param texts the existing texts by path
 */
export const updateTexts = (
  before: PromptFiles,
  after: PromptFiles,
  texts: ReadonlyMap<string, string>
): ReadonlyMap<string, string> => {
  const { renderPrompt, renderFragment, updatePrompt, updateFragment } = makeRenderer(after)
  const update = <File extends { readonly id: string; readonly path: string }>(
    existing: ReadonlyArray<File>,
    files: ReadonlyArray<File>,
    render: (file: File) => string,
    change: (text: string, before: File, after: File) => string
  ): ReadonlyArray<readonly [path: string, text: string]> => {
    const byPath = new Map(existing.map((file) => [file.path, file]))
    return files.flatMap((file) => {
      const [old, text] = [byPath.get(file.path), texts.get(file.path)]
      const updated =
        old !== undefined && text !== undefined && old.id === file.id ? change(text, old, file) : render(file)
      return updated === text ? [] : [[file.path, updated] as const]
    })
  }
  return new Map([
    ...update(before.fragments, after.fragments, renderFragment, updateFragment),
    ...update(before.prompts, after.prompts, renderPrompt, updatePrompt)
  ])
}

/** A file, if its text is valid, and the problems of the text. */
interface Parsed<File> {
  readonly file: File | undefined
  readonly problems: ReadonlyArray<Problem>
}

const rejected = (problems: ReadonlyArray<Problem>) => ({ file: undefined, problems })

/** Parses a fragment's file. `id` is the id of a new fragment, or a function of the id in the file. */
const parseFragment = (
  id: string | ((file_id: string | null) => string),
  path: string,
  text: string
): Parsed<FragmentFile> => {
  const parsed = parseText(FragmentFrontMatter, path, text)
  if (Result.isFailure(parsed)) return rejected(parsed.failure)
  const { frontMatter, body } = parsed.success
  const file_id = frontMatter.id ?? null
  return {
    file: {
      path,
      file_id,
      id: typeof id === "string" ? id : id(file_id),
      name: frontMatter.name ?? posix.basename(path, extension),
      content: body
    },
    problems: []
  }
}

/** Parses a prompt's file; `id` as in `parseFragment`. `fragmentIds` holds the ids of the valid fragments by name. */
const parsePrompt = (
  id: string | ((file_id: string | null) => string),
  path: string,
  text: string,
  fragmentIds: ReadonlyMap<string, string>,
  fragmentNames: ReadonlySet<string> = new Set(fragmentIds.keys())
): Parsed<PromptFile> => {
  const parsed = parseText(PromptFrontMatter, path, text)
  if (Result.isFailure(parsed)) return rejected(parsed.failure)
  const { frontMatter, body } = parsed.success
  const promptFragments = frontMatter.fragments ?? []
  const file_id = frontMatter.id ?? null
  const folder = frontMatter.folder === undefined ? pathToFolder(path) : frontMatter.folder
  const file: PromptFile = {
    path,
    file_id,
    folder,
    id: (typeof id === "string" ? id : id(file_id)) as PromptId,
    title: frontMatter.title ?? posix.basename(path, extension),
    description: frontMatter.description ?? "",
    current_content: body,
    prompt_type: frontMatter.type ?? "user",
    target_model: frontMatter.model ?? "",
    intent: frontMatter.intent ?? "",
    is_favorite: frontMatter.favorite ?? false,
    sort_order: frontMatter.sort_order ?? 0,
    tags: frontMatter.tags ?? [],
    fragments: promptFragments.flatMap(({ fragment, with: variable_overrides = {} }) => {
      const fragment_id = fragmentIds.get(fragment)
      return fragment_id === undefined ? [] : [{ fragment_id, variable_overrides }]
    })
  }
  const problems = promptFragments
    .filter(({ fragment }) => !fragmentNames.has(fragment))
    .map(({ fragment }) => ({
      path,
      message: `fragments: there is no file fragments/${fragment}${extension}`
    }))
  // In code points, as PostgreSQL counts: an exported folder may have any name that its column accepts.
  return folder === null || fitsName(folder)
    ? { file, problems }
    : {
        file,
        problems: [
          ...problems,
          { path, message: `the folder's name must be at most ${sizes.nameLength} characters` }
        ]
      }
}

/**
 * Parses the files of a workspace from their texts by path. Fails with every problem of every file. The id of each
 * file is derived from the workspace; `matchFiles` finds the prompts and fragments that the workspace has already.
 *
 * @param onFile called for each file
 */
export const parsePromptFiles = (
  workspace: WorkspaceId,
  texts: ReadonlyMap<string, string>,
  onFile: () => void = () => {}
): Result.Result<PromptFiles, InvalidFiles> => {
  const problems: Array<Problem> = []
  const parseAll = <File>(
    directory: string,
    parse: (path: string, text: string) => Parsed<File>
  ): ReadonlyArray<File> =>
    [...texts]
      .filter(([path]) => path.startsWith(`${directory}/`))
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .flatMap(([path, text]) => {
        const parsed = parse(path, text)
        problems.push(...parsed.problems)
        onFile()
        return parsed.file === undefined ? [] : [parsed.file]
      })
  const toId = (path: string) => (file_id: string | null) => deriveId(workspace, file_id ?? path)

  const fragments = parseAll("fragments", (path, text) => parseFragment(toId(path), path, text))
  const fragmentIds = new Map(fragments.map(({ path, id }) => [fragmentName(path), id]))
  const fragmentNames = new Set(
    [...texts.keys()].filter((path) => path.startsWith("fragments/")).map(fragmentName)
  )
  const prompts = parseAll("prompts", (path, text) =>
    parsePrompt(toId(path), path, text, fragmentIds, fragmentNames)
  )
  return problems.length > 0 ? Result.fail(InvalidFiles(problems)) : Result.succeed({ prompts, fragments })
}
