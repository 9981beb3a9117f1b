import * as Equal from "effect/Equal"
import * as Result from "effect/Result"
import { isCollection, isMap, isNode, isScalar, parseDocument, stringify, type ToStringOptions } from "yaml"
import { type ContentState, getContent } from "./ContentState.ts"
import { type PromptFile, parseFile, pathToFolder, splitText, yamlOptions } from "./PromptFile.ts"

// Writes the files that `PromptFile.ts` reads.

/** The values of front matter by key. A key whose value is undefined is not written. */
type FrontMatter = Readonly<Record<string, unknown>>

/** Maps the id of each fragment to the name by which front matter refers to the fragment. */
export type FragmentNames = ReadonlyMap<string, string>

/**
 * Converts a file to its front matter. The title or name is always present. Other values are undefined if they are
 * empty, zero or false. `folder` is undefined if the path denotes the same folder.
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

/**
 * Renders a value as YAML. `stringify` can render a text that the parser reads as another text, for example a block of
 * only spaces and newlines. In this case, renders the value without blocks and without quoted texts of several lines.
 */
const renderYaml = (value: unknown, options: ToStringOptions = {}): string => {
  const yaml = stringify(value, { ...yamlOptions, ...options })
  const document = parseDocument(yaml, yamlOptions)
  if (document.errors.length === 0 && JSON.stringify(document) === JSON.stringify(value)) return yaml
  return stringify(value, { ...yamlOptions, ...options, blockQuote: false, doubleQuotedAsJSON: true })
}

/** Renders the text of a new file. */
export const renderFile = (file: PromptFile, fragmentNames: FragmentNames): string =>
  `---\n${renderYaml(toFrontMatter(file, fragmentNames))}---\n${getContent(file.state)}\n`

/** Renders a state as the text of a file, for comparisons. If the prompt is in a folder, the text names the folder. */
export const renderState = (state: ContentState, fragmentNames: FragmentNames): string =>
  renderFile({ path: "prompts/", file_id: null, state }, fragmentNames)

/** Renders a key and its value. If `isFlow` is true, renders one line. If the value is undefined, renders nothing. */
const renderPair = (key: string, value: unknown, isFlow = false): string => {
  if (value === undefined) return ""
  if (!isFlow) return renderYaml({ [key]: value })
  return `${key}: ${renderYaml(value, { collectionStyle: "flow", flowCollectionPadding: false })}`
}

/**
 * Replaces, adds or removes the pairs of YAML whose values differ between `before` and `after`. Keeps a comment after a
 * replaced value, and all other text. `Document.toString` would reformat the other text.
 */
const updateYaml = (yaml: string, before: FrontMatter, after: FrontMatter): string => {
  const keys = Object.keys({ ...before, ...after })
  const changed = new Set(keys.filter((key) => !Equal.equals(before[key], after[key])))
  const { contents } = parseDocument(yaml, yamlOptions)
  let updated = yaml
  // The loop starts with the last pair, because a replacement moves all text after the pair.
  for (const { key: keyNode, value } of isMap(contents) ? contents.items.toReversed() : []) {
    if (!isScalar(keyNode) || !keyNode.range || !isNode(value) || !value.range) continue
    const key = String(keyNode.value)
    if (!changed.delete(key)) continue
    // The range of a block value includes the newline at the end of its last line.
    const lineEnd = yaml.indexOf("\n", value.range[1] - 1)
    const comment = yaml.slice(value.range[1], lineEnd)
    const isFlow = isCollection(value) && value.flow === true
    const pair = renderPair(key, after[key], isFlow).replace("\n", () => `${comment}\n`)
    updated = updated.slice(0, keyNode.range[0]) + pair + updated.slice(lineEnd + 1)
  }
  return updated + [...changed].map((key) => renderPair(key, after[key])).join("")
}

/**
 * Changes the text of an existing file so that it describes `state`. Changes only the parts that differ, so that other
 * formatting and comments stay. If this is not possible, for example because the new content starts with `---`, renders
 * the whole text again.
 */
export const updateFile = (
  before: PromptFile,
  text: string,
  state: ContentState,
  fragmentNames: FragmentNames
): string => {
  const after = { ...before, state }
  const frontMatter = toFrontMatter(after, fragmentNames)
  const { mark, opening, yaml, closing, body, hasWindowsLineEndings } = splitText(text)
  const newYaml = updateYaml(yaml, toFrontMatter(before, fragmentNames), frontMatter)
  const fences = opening === undefined && newYaml !== "" ? ["---\n", "---\n"] : [opening ?? "", closing]
  const content = getContent(state)
  const end = /(?:^|\n)$/.test(body) ? "\n" : ""
  const newBody = getContent(before.state) === content ? body : content + end
  const unixText = mark + fences[0] + newYaml + fences[1] + newBody
  const updated = hasWindowsLineEndings ? unixText.replaceAll("\n", "\r\n") : unixText
  // The parsed state refers to fragments by name, so `toFrontMatter` needs no map of names.
  const describesState = Result.match(parseFile(before.path, updated), {
    onSuccess: (parsed) =>
      getContent(parsed.state) === content && Equal.equals(toFrontMatter(parsed, new Map()), frontMatter),
    onFailure: () => false
  })
  return describesState ? updated : renderFile(after, fragmentNames)
}

/** Changes a file's text from the state `after` back to `before`. Lines that describe both states stay as they are. */
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
