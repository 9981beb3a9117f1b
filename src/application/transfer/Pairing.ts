import { hash } from "node:crypto"
import * as Order from "effect/Order"
import { isObject } from "effect/Predicate"
import * as Result from "effect/Result"
import * as Struct from "effect/Struct"
import { emptySlug, toSlug } from "../../domain/PromptName.ts"
import { findSlots, toSlotText } from "../../domain/Resolution.ts"
import { type ImportedState, type Problem, type WorkspaceContent } from "../../domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { type ContentState, getName, type PromptState, promptFields } from "./ContentState.ts"
import { InvalidFiles, type PromptFile, toFragmentName } from "./PromptFile.ts"

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
 * A prompt or fragment of a workspace, the file that describes it, or both. Each hash is the hash of a state: in the
 * workspace (undefined if archived), in the file, or after the latest import.
 */
export interface Pair {
  readonly kind: ContentState["kind"]
  readonly id: string
  readonly item: ContentItem | undefined
  readonly file: PromptFile | undefined
  readonly workspaceHash: string | undefined
  readonly fileHash: string | undefined
  readonly importedHash: string | undefined
}

/** Returns true if the prompt or fragment has different states in the workspace and in the directory. */
export const isDifferent = ({ workspaceHash, fileHash }: Pair): boolean => workspaceHash !== fileHash

/** Returns a key that contains the kind, because a prompt and a fragment can have the same id. */
const toKey = ({ kind, id }: Pick<ImportedState, "kind" | "id">): string => `${kind} ${id}`

/** Sorts the members of an object by name, because PostgreSQL does not keep the member order of free-form JSON. */
const sortMembers = (_: string, value: unknown): unknown =>
  isObject(value)
    ? Object.fromEntries(Object.entries(value).sort(Order.mapInput(Order.String, ([name]) => name)))
    : value

/** Returns the SHA-256 hash of a state in hexadecimal digits. Equal states have equal hashes. */
export const hashState = (state: ContentState): string =>
  hash("sha256", JSON.stringify(state, sortMembers), "hex")

/** Returns the fragments and prompts of a workspace, archived prompts included. */
const readItems = (content: WorkspaceContent): ReadonlyArray<ContentItem> => {
  const folders = new Map<string | null, string>(content.folders.map(({ id, name }) => [id, name]))
  const tagNames = new Map(content.tags.map(({ id, name }) => [id, name]))
  const fragments = content.fragments.map(({ id, name, content }): ContentItem => {
    const state = { kind: "fragment", name, content } as const
    return { kind: "fragment", id, isArchived: false, createdAt: "", state }
  })
  const prompts = content.prompts.map((prompt): ContentItem => {
    const state = {
      kind: "prompt",
      ...Struct.pick(prompt, promptFields),
      folder: folders.get(prompt.folder_id) ?? null,
      tags: prompt.tags.flatMap((tag) => tagNames.get(tag) ?? []).sort(),
      fragments: prompt.fragments.map(Struct.pick(["fragment_id", "variable_overrides"]))
    } as const
    const { id, is_archived: isArchived, created_at: createdAt } = prompt
    return { kind: "prompt", id, isArchived, createdAt, state }
  })
  return [...fragments, ...prompts]
}

/**
 * Derives the id of a new prompt or fragment from the id in its file or, without an id, from the path of the file. The
 * result is a version 5 UUID in the workspace's namespace. If the id in the file is an earlier path of the file, the
 * result is the id that was derived from the earlier path.
 */
const deriveId = (workspace: WorkspaceId, { file_id, path }: PromptFile): string => {
  const namespace = Buffer.from(workspace.replaceAll("-", ""), "hex")
  const name = Buffer.from(file_id ?? path)
  const bytes = hash("sha1", Buffer.concat([namespace, name]), "buffer").subarray(0, 16)
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x50, 6)
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8)
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})/, "$1-$2-$3-$4-")
}

/** Replaces each fragment name in a file's state with the id of the fragment. */
const resolveFragments = (state: ContentState, idsByName: ReadonlyMap<string, string>): ContentState => {
  if (state.kind === "fragment") return state
  const fragments = state.fragments.map(({ fragment_id, variable_overrides }) => ({
    fragment_id: idsByName.get(fragment_id) ?? fragment_id,
    variable_overrides
  }))
  return { ...state, fragments }
}

/**
 * Pairs the prompts and fragments of a workspace with the files of a directory. Returns a pair for each file, in the
 * order of the files, and then a pair for each prompt and fragment without a file.
 *
 * Uses the id in the front matter of a file if the workspace has this id now, or had this id after the latest import.
 * The id can belong to an archived prompt. Any other file gets an id that is derived from the workspace. So an id of
 * another workspace is never used, and every import of a file finds the same prompt. Fails if two files describe the
 * same prompt or fragment.
 *
 * @param files the result of `parseFiles`, which has fragments before prompts
 */
export const pairWithFiles = (
  workspace: WorkspaceId,
  content: WorkspaceContent,
  files: ReadonlyArray<PromptFile>
): Result.Result<ReadonlyArray<Pair>, InvalidFiles> => {
  const items = new Map(readItems(content).map((item) => [toKey(item), item]))
  const importedHashes = new Map(content.importedStates.map((imported) => [toKey(imported), imported.hash]))
  const fragmentIds = new Map<string, string>()
  const duplicates: Array<Problem> = []
  const pairs = new Map<string, Pair>()
  const addPair = (kind: Pair["kind"], id: string, file: PromptFile | undefined) => {
    const key = toKey({ kind, id })
    const item = items.get(key)
    const workspaceHash = item?.isArchived === false ? hashState(item.state) : undefined
    const fileHash = file && hashState(file.state)
    pairs.set(key, { kind, id, item, file, workspaceHash, fileHash, importedHash: importedHashes.get(key) })
  }
  for (const file of files) {
    const { kind } = file.state
    const fileKey = file.file_id === null ? "" : toKey({ kind, id: file.file_id })
    const isKnown = items.has(fileKey) || importedHashes.has(fileKey)
    const id = file.file_id !== null && isKnown ? file.file_id : deriveId(workspace, file)
    if (kind === "fragment") fragmentIds.set(toFragmentName(file.path), id)
    const earlier = pairs.get(toKey({ kind, id }))?.file
    if (earlier === undefined)
      addPair(kind, id, { ...file, state: resolveFragments(file.state, fragmentIds) })
    else duplicates.push({ path: file.path, message: `has the id of ${earlier.path}` })
  }
  if (duplicates.length > 0) return Result.fail(new InvalidFiles(duplicates))
  for (const [key, { kind, id }] of items) if (!pairs.has(key)) addPair(kind, id, undefined)
  return Result.succeed([...pairs.values()])
}

/** Returns a problem for each file that gives a prompt the name of another file's prompt. */
const findNameConflicts = (pairs: ReadonlyArray<Pair>): ReadonlyArray<Problem> => {
  const named = pairs.flatMap(({ item, file }) => {
    if (file?.state.kind !== "prompt") return []
    const slug = toSlug(file.state.title)
    const keepsName = item?.isArchived === false && toSlug(getName(item.state)) === slug
    return slug === emptySlug ? [] : [{ path: file.path, slug, keepsName }]
  })
  const owners = new Map<string, string>()
  return named
    .toSorted(Order.flip(Order.Struct({ keepsName: Order.Boolean })))
    .flatMap(({ path, slug, keepsName }) => {
      const owner = owners.get(slug) ?? path
      owners.set(slug, owner)
      const message = `has the name ${slug}, like ${owner}: change one of the titles`
      return owner === path || keepsName ? [] : [{ path, message }]
    })
}

/**
 * Pairs prompts and fragments with files, as `pairWithFiles` does. Also fails if a file gives a prompt the name of
 * another file's prompt (docs/names.md). Prompts can keep a name that they already share. Titles without Latin letters
 * and digits can have the same slug.
 */
export const pairForImport = (
  ...input: Parameters<typeof pairWithFiles>
): Result.Result<ReadonlyArray<Pair>, InvalidFiles> =>
  Result.flatMap(pairWithFiles(...input), (pairs) => {
    const problems = findNameConflicts(pairs)
    return problems.length > 0 ? Result.fail(new InvalidFiles(problems)) : Result.succeed(pairs)
  })

/** Returns the slots among `slots` that the overrides do not bind. */
export const listUnbound = (
  slots: Iterable<string>,
  overrides: Readonly<Record<string, unknown>>
): ReadonlyArray<string> =>
  [...slots].filter((slot) => !Object.hasOwn(overrides, slot) || toSlotText(overrides[slot]) === undefined)

/** Returns a warning for each binding that names no slot of its fragment, and for each slot without a binding. */
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
    const unbound = listUnbound(fragment.slots, variable_overrides)
    return [
      ...unknown.map((name) => `binds ${name}, which is no slot of ${fragment.path}`),
      ...unbound.map((name) => `does not bind the slot {{${name}}} of ${fragment.path}`)
    ].map((message) => ({ path, message }))
  }
  return pairs.flatMap(({ file }) =>
    file?.state.kind === "prompt" ? file.state.fragments.flatMap((fragment) => warn(file.path, fragment)) : []
  )
}
