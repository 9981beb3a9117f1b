import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import { type FrontMatter, renderText, updateText } from "./FrontMatter.ts"
import { type ContentState, getContent, parseFile, pathToFolder, type PromptFile } from "./PromptFile.ts"

// Writes the files that `PromptFile.ts` reads.

/** The name by which front matter refers to a fragment, by the id of the fragment. */
export type FragmentNames = ReadonlyMap<string, string>

/**
 * Converts a file to its front matter. The title or name is always present. Other values are undefined if they are
 * empty, zero or false, and so is a folder that the path denotes.
 */
const toFrontMatter = ({ path, file_id, state }: PromptFile, fragmentNames: FragmentNames): FrontMatter => {
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

/** Renders the text of a new file. */
export const renderFile = (file: PromptFile, fragmentNames: FragmentNames): string =>
  renderText(toFrontMatter(file, fragmentNames), getContent(file.state))

/** Renders a state as the text of a file, for comparisons. If the prompt is in a folder, the text names the folder. */
export const renderState = (state: ContentState, fragmentNames: FragmentNames): string =>
  renderFile({ path: "prompts/", file_id: null, state }, fragmentNames)

/**
 * Changes the text of an existing file so that it describes `state`. Changes only what differs, so that formatting and
 * comments stay. If this is not possible, for example because the new content starts with `---`, renders the whole text
 * again.
 */
export const updateFile = (
  before: PromptFile,
  text: string,
  state: ContentState,
  fragmentNames: FragmentNames
): string => {
  const after = { ...before, state }
  const frontMatter = toFrontMatter(after, fragmentNames)
  const content = getContent(state)
  const body = getContent(before.state) === content ? undefined : content
  const updated = updateText(text, toFrontMatter(before, fragmentNames), frontMatter, body)
  if (updated === undefined) return renderFile(after, fragmentNames)
  const describesState = Result.match(parseFile(before.path, updated), {
    // The parsed state refers to fragments by name.
    onSuccess: (parsed) =>
      getContent(parsed.state) === content && Equal.equals(toFrontMatter(parsed, new Map()), frontMatter),
    onFailure: () => false
  })
  return describesState ? updated : renderFile(after, fragmentNames)
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
  const parsed = parseFile(path, text)
  const file_id = Result.isSuccess(parsed) ? parsed.success.file_id : null
  return updateFile({ path, file_id, state: after }, text, before, fragmentNames)
}
