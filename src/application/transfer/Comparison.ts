import { createHash } from "node:crypto"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import { emptySlug, toSlug } from "../../domain/PromptName.ts"
import { findSlots, toSlotText } from "../../domain/Resolution.ts"
import type { Problem, WorkspaceContent } from "../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import {
  type ContentState,
  getContent,
  getName,
  hashState,
  InvalidFiles,
  promptFields,
  type PromptFile,
  type PromptState,
  toFragmentName,
  toKey
} from "./PromptFile.ts"

/** A prompt or a fragment of a workspace. */
export interface ContentItem {
  readonly kind: ContentState["kind"]
  readonly id: string
  readonly isArchived: boolean
  /** When the prompt was created; an empty string for a fragment. */
  readonly createdAt: string
  readonly state: ContentState
}

/**
 * A prompt or fragment in the workspace and in a directory of files. The hashes are those of its states in the
 * workspace, in the directory, and after the latest import. A hash is undefined if there is no such state. An archived
 * prompt has an `item`, but no `workspaceHash`. `isImported` is true if any import has recorded its states.
 */
export interface Pair {
  readonly kind: ContentState["kind"]
  readonly id: string
  readonly item: ContentItem | undefined
  readonly file: PromptFile | undefined
  readonly workspaceHash: string | undefined
  readonly fileHash: string | undefined
  readonly importedHash: string | undefined
  readonly isImported: boolean
}

/** Returns true if the prompt or fragment has different states in the workspace and in the directory. */
export const isDifferent = ({ workspaceHash, fileHash }: Pair): boolean => workspaceHash !== fileHash

/**
 * Returns true if the prompt or fragment was created, edited, archived or deleted in the workspace since the latest
 * import. Before the first import, there is nothing to compare with, so the result is false.
 */
export const isEditedInWorkspace = ({ isImported, workspaceHash, importedHash }: Pair): boolean =>
  isImported && workspaceHash !== importedHash

/** Returns true if the file was added or edited since the latest import. */
export const isEditedInDirectory = ({ fileHash, importedHash }: Pair): boolean =>
  fileHash !== undefined && fileHash !== importedHash

/** Returns the fragments and prompts of a workspace, archived prompts included. */
const readItems = (content: WorkspaceContent): ReadonlyArray<ContentItem> => {
  const folders = new Map<string, string>(content.folders.map(({ id, name }) => [id, name]))
  const tagNames = new Map(content.tags.map(({ id, name }) => [id, name]))
  return [
    ...content.fragments.map(({ id, name, content }) => ({
      kind: "fragment" as const,
      id,
      isArchived: false,
      createdAt: "",
      state: { kind: "fragment", name, content } as const
    })),
    ...content.prompts.map((prompt) => ({
      kind: "prompt" as const,
      id: prompt.id,
      isArchived: prompt.is_archived,
      createdAt: prompt.created_at,
      state: {
        kind: "prompt",
        ...Struct.pick(prompt, promptFields),
        folder: folders.get(prompt.folder_id ?? "") ?? null,
        tags: prompt.tags.flatMap((tag) => tagNames.get(tag) ?? []).sort(),
        fragments: prompt.fragments.map(Struct.pick(["fragment_id", "variable_overrides"]))
      } as const
    }))
  ]
}

/**
 * Derives the id of a new prompt or fragment: a version 5 UUID. The namespace of the UUID is the id of the workspace.
 * The UUID is computed from the id in the file or, without an id, from the path of the file. An id that is an earlier
 * path of the file therefore gives the id that the file had at that path.
 */
const deriveId = (workspace: WorkspaceId, { file_id, path }: PromptFile): string => {
  const namespace = Buffer.from(workspace.replaceAll("-", ""), "hex")
  const bytes = createHash("sha1")
    .update(namespace)
    .update(file_id ?? path)
    .digest()
    .subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")
}

/** A file, and the id of the prompt or fragment that it describes. */
type MatchedFile = Pick<Pair, "kind" | "id"> & { readonly file: PromptFile }

/**
 * Finds the prompt or fragment that each file describes, and replaces the names of fragments with their ids. If `keys`
 * contains the id in the front matter, the file describes the prompt or fragment with this id. Any other file gets an
 * id that is derived from the workspace. So an id of another workspace is never used, and every import of the same
 * files into a workspace finds the same prompts.
 */
const matchFiles = (
  workspace: WorkspaceId,
  keys: ReadonlySet<string>,
  files: ReadonlyArray<PromptFile>
): ReadonlyArray<MatchedFile> => {
  const matched = files.map((file) => {
    const { kind } = file.state
    const isKnown = file.file_id !== null && keys.has(toKey({ kind, id: file.file_id }))
    return { kind, id: isKnown ? file.file_id : deriveId(workspace, file), file }
  })
  const fragmentIds = new Map(
    matched.flatMap(({ kind, id, file }) => (kind === "fragment" ? [[toFragmentName(file.path), id]] : []))
  )
  const withFragmentIds = (state: ContentState): ContentState => {
    if (state.kind === "fragment") return state
    const fragments = state.fragments.map(({ fragment_id, variable_overrides }) => ({
      fragment_id: fragmentIds.get(fragment_id) ?? fragment_id,
      variable_overrides
    }))
    return { ...state, fragments }
  }
  return matched.map(({ file, ...match }) => ({
    ...match,
    file: { ...file, state: withFragmentIds(file.state) }
  }))
}

/**
 * Compares a workspace with the files of a directory. Returns a pair for each file, in the order of the files, and then
 * for each prompt and fragment without a file. A file can also describe a prompt that is archived, or that was deleted
 * since the latest import. Fails if two files describe the same prompt or fragment.
 */
export const compare = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  files: ReadonlyArray<PromptFile>
): Result.Result<ReadonlyArray<Pair>, InvalidFiles> => {
  const items = new Map(readItems(content).map((item) => [toKey(item), item]))
  const importedHashes = new Map(content.importedStates.map((imported) => [toKey(imported), imported.hash]))
  const matched = matchFiles(workspace, new Set([...items.keys(), ...importedHashes.keys()]), files)
  const filesByKey = Map.groupBy(matched, toKey)
  const duplicates = [...filesByKey.values()].flatMap(([first, ...others]) =>
    others.map(({ file: { path } }) => ({ path, message: `has the id of ${first?.file.path}` }))
  )
  if (duplicates.length > 0) return Result.fail(InvalidFiles(duplicates))
  const toPair = ([key, { kind, id }]: readonly [string, Pick<Pair, "kind" | "id">]): Pair => {
    const item = items.get(key)
    const [{ file } = { file: undefined }] = filesByKey.get(key) ?? []
    return {
      kind,
      id,
      item,
      file,
      workspaceHash: item?.isArchived === false ? hashState(item.state) : undefined,
      fileHash: file && hashState(file.state),
      importedHash: importedHashes.get(key),
      isImported: importedHashes.size > 0
    }
  }
  const all = [...matched, ...items.values()].map((described) => [toKey(described), described] as const)
  return Result.succeed([...new Map(all)].map(toPair))
}

/** Returns true if the prompt of a pair already has the slug `slug` in the workspace. */
const hasSlug = ({ item }: Pair, slug: string): boolean =>
  item?.isArchived === false && toSlug(getName(item.state)) === slug

/**
 * Compares a workspace with files like `compare`, and also fails if a file gives a prompt the name of another file's
 * prompt (docs/names.md). Prompts that already have the same name in the workspace may keep the name. Titles without
 * Latin letters and digits may have the same slug.
 */
export const compareForImport = (
  ...input: Parameters<typeof compare>
): Result.Result<ReadonlyArray<Pair>, InvalidFiles> =>
  Result.flatMap(compare(...input), (pairs) => {
    const described = pairs.flatMap((pair) => {
      const { file } = pair
      const slug = file?.state.kind === "prompt" ? toSlug(file.state.title) : emptySlug
      return file === undefined || slug === emptySlug ? [] : [{ ...pair, path: file.path, slug }]
    })
    const problems = [...Map.groupBy(described, ({ slug }) => slug)].flatMap(([slug, sameName]) => {
      const [first, ...others] = sameName.sort((a, b) => Number(hasSlug(b, slug)) - Number(hasSlug(a, slug)))
      return others
        .filter((pair) => !hasSlug(pair, slug))
        .map(({ path }) => ({
          path,
          message: `has the name ${slug}, like ${first?.path}: change one of the titles`
        }))
    })
    return problems.length > 0 ? Result.fail(InvalidFiles(problems)) : Result.succeed(pairs)
  })

/** Returns the slots among `slots` that the overrides do not bind. */
export const listUnbound = (
  slots: Iterable<string>,
  overrides: Readonly<Record<string, unknown>>
): ReadonlyArray<string> =>
  [...slots].filter((slot) => !Object.hasOwn(overrides, slot) || toSlotText(overrides[slot]) === undefined)

/**
 * Returns a warning for each binding that names no slot of its fragment, and for each slot of a fragment that a prompt
 * does not bind. A binding that names no slot has no effect. The application fills a slot without a binding.
 */
export const findSlotWarnings = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Problem> => {
  const fragments = new Map(
    pairs.flatMap(({ id, file }) =>
      file?.state.kind === "fragment" ? [[id, { path: file.path, slots: findSlots(file.state.content) }]] : []
    )
  )
  const warn = (path: string, { fragment_id, variable_overrides }: PromptState["fragments"][number]) => {
    const fragment = fragments.get(fragment_id)
    if (fragment === undefined) return []
    const unknown = Object.keys(variable_overrides).filter((name) => !fragment.slots.has(name))
    return [
      ...unknown.map((name) => ({ path, message: `binds ${name}, which is no slot of ${fragment.path}` })),
      ...listUnbound(fragment.slots, variable_overrides).map((name) => ({
        path,
        message: `does not bind the slot {{${name}}} of ${fragment.path}`
      }))
    ]
  }
  return pairs.flatMap(({ file }) =>
    file?.state.kind === "prompt" ? file.state.fragments.flatMap((fragment) => warn(file.path, fragment)) : []
  )
}

/**
 * Returns a warning for each new file without an id that has the content or the name of a prompt or fragment that loses
 * its file. If the file was moved, its prompt gets another id, and its versions stay with the archived prompt.
 */
export const findMoves = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Problem> => {
  const toTraits = (state: ContentState) => [
    `${state.kind} name ${getName(state)}`,
    `${state.kind} content ${getContent(state)}`
  ]
  const lost = new Map(
    pairs.flatMap(({ item, file }) =>
      file === undefined && item?.isArchived === false
        ? toTraits(item.state).map((trait) => [trait, item] as const)
        : []
    )
  )
  return pairs.flatMap(({ kind, item, file }) => {
    if (file === undefined || file.file_id !== null || item !== undefined) return []
    const [old] = toTraits(file.state).flatMap((trait) => lost.get(trait) ?? [])
    if (old === undefined) return []
    const message = `looks like a move of ${kind} ${old.id} (${getName(old.state)}): to keep its id and its history, add the earlier path of the file to the front matter, such as "id: ${kind}s/old/path.md"`
    return [{ path: file.path, message }]
  })
}
