import type { Problem } from "../../../domain/Problem.ts"
import type {
  Folder,
  Fragment,
  PromptFragment,
  WorkspacePrompt,
  WorkspaceTag
} from "../../../domain/Workspace.ts"

/** The state of a prompt as far as a file describes it (docs/prompts-as-files.md). */
export interface PromptState
  extends Pick<
    WorkspacePrompt,
    | "title"
    | "description"
    | "current_content"
    | "prompt_type"
    | "target_model"
    | "intent"
    | "is_favorite"
    | "sort_order"
  > {
  /** The name of the folder; null outside any folder. */
  readonly folder: string | null
  /** The names of the tags. */
  readonly tags: ReadonlyArray<string>
  /** The fragments to append, in their order. */
  readonly fragments: ReadonlyArray<Pick<PromptFragment, "fragment_id" | "variable_overrides">>
}

/** The state of a fragment: all that it has except its id. */
export type FragmentState = Omit<Fragment, "id">

/** The path of a file, and the id that its front matter has; null if it has none. */
export interface FileIdentity {
  /** The path in the directory, with slashes. */
  readonly path: string
  readonly file_id: string | null
}

/**
 * The file of a prompt. Before `matchFiles`, `id` is the id that a new prompt gets; after it, the id of the prompt
 * that the file describes.
 */
export interface PromptFile extends PromptState, FileIdentity, Pick<WorkspacePrompt, "id"> {}

/** The file of a fragment; `id` as in `PromptFile`. */
export interface FragmentFile extends FragmentState, FileIdentity, Pick<Fragment, "id"> {}

/** Returns a prompt file's fields of the prompt: all but the identity of the file. */
export const toPromptFields = ({
  path: _,
  file_id: __,
  ...fields
}: PromptFile): Omit<PromptFile, keyof FileIdentity> => fields

/** Returns a fragment file's fields of the fragment: all but the identity of the file. */
export const toFragmentFields = ({ path: _, file_id: __, ...fields }: FragmentFile): Fragment => fields

/** All files of a directory. */
export interface PromptFiles {
  readonly prompts: ReadonlyArray<PromptFile>
  readonly fragments: ReadonlyArray<FragmentFile>
}

/** A change that an import of files makes. `path` is null if no file describes the prompt or fragment. */
interface AnyChange {
  readonly id: string
  readonly path: string | null
  readonly name: string
  /** Only a change of a prompt's content makes a new version. */
  readonly change: "added" | "new version" | "changed" | "archived" | "removed"
}

/** A change of a prompt, with its state before and after; null where it does not exist. An archived prompt has no state. */
export interface PromptChange extends AnyChange {
  readonly kind: "prompt"
  readonly before: PromptState | null
  readonly after: PromptState | null
}

/** A change of a fragment, with its state before and after; null where it does not exist. */
export interface FragmentChange extends AnyChange {
  readonly kind: "fragment"
  readonly before: FragmentState | null
  readonly after: FragmentState | null
}

export type FileChange = PromptChange | FragmentChange

/**
 * Files that were rejected; nothing has changed. `problems` holds the first problems, `count` the number of all.
 * The path of a problem starts with the path of its file.
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

/** The content that files are made from. Versions and histories are not needed. */
export interface FileSource {
  readonly folders: ReadonlyArray<Folder>
  readonly tags: ReadonlyArray<WorkspaceTag>
  readonly fragments: ReadonlyArray<Fragment>
  readonly prompts: ReadonlyArray<SourcePrompt>
}

/** A prompt that a file is made from. */
export type SourcePrompt = Omit<WorkspacePrompt, "versions">

/** Makes a function that returns the state of a prompt of the source. */
export const makeStateReader = (
  source: Pick<FileSource, "folders" | "tags">
): ((prompt: SourcePrompt) => PromptState) => {
  const folders = new Map(source.folders.map(({ id, name }) => [id, name]))
  const tags = new Map(source.tags.map(({ id, name }) => [id, name]))
  return (prompt) => ({
    folder: prompt.folder_id === null ? null : (folders.get(prompt.folder_id) ?? null),
    title: prompt.title,
    description: prompt.description,
    current_content: prompt.current_content,
    prompt_type: prompt.prompt_type,
    target_model: prompt.target_model,
    intent: prompt.intent,
    is_favorite: prompt.is_favorite,
    sort_order: prompt.sort_order,
    tags: prompt.tags.flatMap((id) => tags.get(id) ?? []).sort(),
    fragments: prompt.fragments.map(({ fragment_id, variable_overrides }) => ({
      fragment_id,
      variable_overrides
    }))
  })
}

/** Returns the state that a prompt file describes, in the form of `makeStateReader`: each tag once, sorted. */
export const toPromptState = (file: PromptFile): PromptState => {
  const { id: _, tags, ...state } = toPromptFields(file)
  return { ...state, tags: [...new Set(tags)].sort() }
}

/** Returns the state that a fragment file describes. */
export const toFragmentState = ({ name, content }: FragmentState): FragmentState => ({ name, content })

/** Converts the current state of a workspace to files. Archived prompts have no file. `toPlace` assigns the place of each file. */
export const toPromptFiles = (
  source: FileSource,
  toPlace: {
    readonly prompt: (prompt: SourcePrompt, folder: string | null) => FileIdentity
    readonly fragment: (fragment: Fragment) => FileIdentity
  }
): PromptFiles => {
  const readState = makeStateReader(source)
  return {
    fragments: source.fragments.map((fragment) => ({ ...fragment, ...toPlace.fragment(fragment) })),
    prompts: source.prompts
      .filter(({ is_archived }) => !is_archived)
      .map((prompt): PromptFile => {
        const state = readState(prompt)
        return { id: prompt.id, ...toPlace.prompt(prompt, state.folder), ...state }
      })
  }
}

const findDuplicates = (
  files: ReadonlyArray<{ readonly id: string; readonly path: string }>
): ReadonlyArray<Problem> =>
  [...Map.groupBy(files, ({ id }) => id).values()].flatMap(([first, ...others]) =>
    others.map(({ path }) => ({ path, message: `has the id of ${first?.path}` }))
  )

/** Returns the problems between files: files that describe the same prompt or fragment. */
export const findFileProblems = ({ prompts, fragments }: PromptFiles): ReadonlyArray<Problem> => [
  ...findDuplicates(fragments),
  ...findDuplicates(prompts)
]
