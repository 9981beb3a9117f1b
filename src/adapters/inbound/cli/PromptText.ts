import { posix } from "node:path"
import * as Result from "effect/Result"
import type { Problem } from "../../../domain/Problem.ts"
import {
  type FragmentFile,
  InvalidFiles,
  type PromptFile,
  type PromptFiles
} from "../../../application/formats/PromptFiles.ts"
import type { PromptId } from "../../../domain/Prompt.ts"
import { fitsName, maxNameLength } from "../../../domain/Workspace.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { FragmentFront, parseText, PromptFront, renderText } from "./FrontMatter.ts"
import { deriveId, extension, fragmentName, makeHasFolderInPath, pathToFolder } from "./PromptPaths.ts"

/** Converts a prompt to its front matter. Values that are the default are left out. */
const toFrontMatter = (
  file: PromptFile,
  fragmentNames: ReadonlyMap<string, string>,
  hasFolderInPath: boolean
): PromptFront => ({
  id: file.id,
  title: file.title,
  ...(file.folder === null || hasFolderInPath ? {} : { folder: file.folder }),
  ...(file.description === "" ? {} : { description: file.description }),
  type: file.prompt_type,
  ...(file.target_model === "" ? {} : { model: file.target_model }),
  ...(file.intent === "" ? {} : { intent: file.intent }),
  ...(file.tags.length === 0 ? {} : { tags: file.tags }),
  ...(file.is_favorite ? { favorite: true } : {}),
  ...(file.sort_order === 0 ? {} : { sort_order: file.sort_order }),
  ...(file.fragments.length === 0
    ? {}
    : {
        fragments: file.fragments.map(({ fragment_id, variable_overrides }) => ({
          fragment: fragmentNames.get(fragment_id) ?? fragment_id,
          ...(Object.keys(variable_overrides).length === 0 ? {} : { with: variable_overrides })
        }))
      })
})

/** Renders the text of each file, by its path. */
export const renderFiles = ({ prompts, fragments }: PromptFiles): ReadonlyMap<string, string> => {
  const fragmentNames = new Map(fragments.map(({ id, path }) => [id, fragmentName(path)]))
  const hasFolderInPath = makeHasFolderInPath(prompts)
  return new Map([
    ...fragments.map(({ path, id, name, content }) => [path, renderText({ id, name }, content)] as const),
    ...prompts.map((file) => {
      const front = toFrontMatter(file, fragmentNames, hasFolderInPath(file))
      return [file.path, renderText(front, file.current_content)] as const
    })
  ])
}

/** Parses the files of a workspace from their texts by path. Fails with every problem of every file. */
export const parsePromptFiles = (
  workspace: WorkspaceId,
  texts: ReadonlyMap<string, string>
): Result.Result<PromptFiles, InvalidFiles> => {
  const problems: Array<Problem> = []
  const inDirectory = (directory: string) =>
    [...texts].filter(([path]) => path.startsWith(`${directory}/`)).sort(([a], [b]) => (a < b ? -1 : 1))

  const fragments = inDirectory("fragments").flatMap(([path, text]): Array<FragmentFile> => {
    const parsed = parseText(FragmentFront, path, text)
    if (Result.isFailure(parsed)) {
      problems.push(...parsed.failure)
      return []
    }
    const { front, body } = parsed.success
    const id = front.id ?? deriveId(workspace, path)
    return [{ path, id, name: front.name ?? posix.basename(path, extension), content: body }]
  })
  const fragmentNames = new Set(inDirectory("fragments").map(([path]) => fragmentName(path)))
  const fragmentIds = new Map(fragments.map(({ path, id }) => [fragmentName(path), id]))

  const prompts = inDirectory("prompts").flatMap(([path, text]): Array<PromptFile> => {
    const parsed = parseText(PromptFront, path, text)
    if (Result.isFailure(parsed)) {
      problems.push(...parsed.failure)
      return []
    }
    const { front, body } = parsed.success
    const bindings = front.fragments ?? []
    for (const { fragment } of bindings) {
      if (!fragmentNames.has(fragment))
        problems.push({ path, message: `fragments: there is no file fragments/${fragment}${extension}` })
    }
    return [
      {
        path,
        folder: front.folder ?? pathToFolder(path),
        id: front.id ?? (deriveId(workspace, path) as PromptId),
        title: front.title ?? posix.basename(path, extension),
        description: front.description ?? "",
        current_content: body,
        prompt_type: front.type ?? "user",
        target_model: front.model ?? "",
        intent: front.intent ?? "",
        is_favorite: front.favorite ?? false,
        sort_order: front.sort_order ?? 0,
        tags: front.tags ?? [],
        fragments: bindings.flatMap(({ fragment, with: variable_overrides = {} }) => {
          const fragment_id = fragmentIds.get(fragment)
          return fragment_id === undefined ? [] : [{ fragment_id, variable_overrides }]
        })
      }
    ]
  })
  for (const { path, folder } of prompts) {
    // In code points, as PostgreSQL counts: an exported folder may have any name that its column accepts.
    if (folder !== null && !fitsName(folder))
      problems.push({ path, message: `the folder's name must be at most ${maxNameLength} characters` })
  }
  return problems.length > 0 ? Result.fail(InvalidFiles(problems)) : Result.succeed({ prompts, fragments })
}
