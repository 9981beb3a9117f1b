import type { Problem } from "../../domain/Problem.ts"
import type {
  Folder,
  Fragment,
  PromptFragment,
  WorkspacePrompt,
  WorkspaceTag
} from "../../domain/Workspace.ts"

/** A prompt as its file describes it (docs/prompts-as-files.md). The workspace keeps everything else. */
export interface PromptFile
  extends Pick<
    WorkspacePrompt,
    | "id"
    | "title"
    | "description"
    | "current_content"
    | "prompt_type"
    | "target_model"
    | "intent"
    | "is_favorite"
    | "sort_order"
  > {
  /** The path of the file in its directory. */
  readonly path: string
  /** The name of the folder; null outside any folder. */
  readonly folder: string | null
  /** The names of the tags. */
  readonly tags: ReadonlyArray<string>
  /** The fragments to append, in their order. */
  readonly fragments: ReadonlyArray<Pick<PromptFragment, "fragment_id" | "variable_overrides">>
}

/** A fragment as its file describes it. */
export interface FragmentFile extends Fragment {
  readonly path: string
}

/** All files of a directory. */
export interface PromptFiles {
  readonly prompts: ReadonlyArray<PromptFile>
  readonly fragments: ReadonlyArray<FragmentFile>
}

/** A change that an import of files makes to a prompt or a fragment. `path` is null if it has no file. */
export interface FileChange {
  readonly kind: "prompt" | "fragment"
  readonly id: string
  readonly path: string | null
  readonly name: string
  /** Only a change of a prompt's content makes a new version. */
  readonly change: "added" | "new version" | "changed" | "archived" | "removed"
}

/**
 * Files that were rejected; nothing has changed. Has the first problems and the number of all problems. The path of a
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

/** The content that files are made from. Versions and histories are not needed. */
export interface FileSource {
  readonly folders: ReadonlyArray<Folder>
  readonly tags: ReadonlyArray<WorkspaceTag>
  readonly fragments: ReadonlyArray<Fragment>
  readonly prompts: ReadonlyArray<Omit<WorkspacePrompt, "versions">>
}

/** Converts the current state of a workspace to files. Archived prompts have no file. `toPath` assigns the path of each file. */
export const toPromptFiles = (
  source: FileSource,
  toPath: {
    readonly prompt: (prompt: FileSource["prompts"][number], folder: string | null) => string
    readonly fragment: (fragment: Fragment) => string
  }
): PromptFiles => {
  const folders = new Map(source.folders.map(({ id, name }) => [id, name]))
  const tags = new Map(source.tags.map(({ id, name }) => [id, name]))
  const toPromptFile = (prompt: FileSource["prompts"][number]): PromptFile => {
    const folder = prompt.folder_id === null ? null : (folders.get(prompt.folder_id) ?? null)
    return {
      path: toPath.prompt(prompt, folder),
      folder,
      id: prompt.id,
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
    }
  }
  return {
    fragments: source.fragments.map((fragment) => ({ ...fragment, path: toPath.fragment(fragment) })),
    prompts: source.prompts.filter(({ is_archived }) => !is_archived).map(toPromptFile)
  }
}

const findDuplicates = (
  files: ReadonlyArray<{ readonly id: string; readonly path: string }>
): ReadonlyArray<Problem> =>
  [...Map.groupBy(files, ({ id }) => id).values()].flatMap(([first, ...others]) =>
    others.map(({ path }) => ({ path, message: `has the id of ${first?.path}` }))
  )

/** Returns the problems between files: files with the same id. */
export const findFileProblems = ({ prompts, fragments }: PromptFiles): ReadonlyArray<Problem> => [
  ...findDuplicates(fragments),
  ...findDuplicates(prompts)
]
