import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { type Archive, archiveFormat, writeArchive } from "../../src/application/transfer/Archive.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { toSlug } from "../../src/domain/PromptName.ts"
import { sizes } from "../../src/domain/Sizes.ts"
import type { WorkspacePrompt } from "../../src/domain/Workspace.ts"
import type {
  ContentEdit,
  CurrentPrompt,
  ImportedState,
  WorkspaceContent
} from "../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import { archive, key, user, workspace } from "../../src/testing/archives.ts"
import { archives } from "./generatedArchives.ts"

// The archives of the contract suites, and conversions for other tests.
export * from "../../src/testing/archives.ts"
export * from "./generatedArchives.ts"

/** Archives whose prompts have different slugs, so that an empty workspace can import their files. */
export const archivesWithNames: Arbitrary.Arbitrary<Archive> = Arbitrary.map(archives, (archive) => {
  const slugs = new Set<string>()
  const makeTitle = (title: string, index: number): string => {
    const slug = toSlug(title)
    const distinct = slugs.has(slug) ? `${index}x ${title}` : title
    slugs.add(toSlug(distinct))
    return Array.from(distinct).slice(0, sizes.nameLength).join("")
  }
  return {
    ...archive,
    prompts: archive.prompts.map((prompt, index) => ({ ...prompt, title: makeTitle(prompt.title, index) }))
  }
})

/** The content of a tenant, and fields of its workspace and of its key. */
interface TenantOptions extends Partial<Pick<Archive, "folders" | "tags" | "fragments" | "prompts">> {
  readonly workspace?: Parameters<typeof workspace>[0]
  readonly key?: Parameters<typeof key>[2]
}

/** Makes a workspace with one user, who owns one key. */
export const makeTenant = (options: TenantOptions = {}) => {
  const { workspace: workspaceFields, key: keyFields, ...content } = options
  const home = workspace(workspaceFields)
  const owner = user()
  const own = key(home.id, owner, keyFields)
  return {
    home,
    owner,
    key: own,
    archive: archive({ workspace: home, users: [owner], api_keys: [own.stored], ...content })
  }
}

export const compareIds = (a: { readonly id: string }, b: { readonly id: string }): number =>
  a.id < b.id ? -1 : 1

/** Returns the text of an archive's file, as an export writes it. */
export const toArchiveText = (archive: Archive): string => [...writeArchive(archive)].join("")

/**
 * Returns an archive with its members in a different order: each number of `order` moves one of the members to the end.
 */
export const shuffleMembers = (archive: Archive, order: ReadonlyArray<number>): Archive => {
  const members = Object.entries(archive)
  for (const number of order) members.push(...members.splice(number % members.length, 1))
  return Object.fromEntries(members) as unknown as Archive
}

/** Gives the first items of each list of `content` the ids of the first items of `other`. */
export const shareIds = <A extends Content>(content: A, other: Content, count: number): A => {
  const renamed = new Map<string, string>()
  for (const list of ["folders", "tags", "fragments", "prompts"] as const)
    for (const [index, { id }] of content[list].slice(0, count).entries())
      renamed.set(id, other[list][index]?.id ?? id)
  return JSON.parse(JSON.stringify(content).replace(/[0-9a-f-]{36}/g, (id) => renamed.get(id) ?? id))
}
type Content = Record<"folders" | "tags" | "fragments" | "prompts", ReadonlyArray<{ readonly id: string }>>

/** Imports an archive into the store of the current test. */
export const loadArchive = (archive: Archive) =>
  Effect.flatMap(WorkspaceStore, (store) => store.importWorkspace(archive))

/** Makes an edit that changes nothing but `changes`. */
export const makeEdit = (changes: Partial<ContentEdit> = {}): ContentEdit => ({
  folders: [],
  tags: [],
  fragments: [],
  removedFragments: [],
  prompts: [],
  ...changes
})

export const exportArchive = (workspace: WorkspaceId) =>
  Effect.map(
    Effect.flatMap(WorkspaceStore, (store) => store.exportWorkspace(workspace)),
    (whole): Archive => ({ format: archiveFormat, ...whole })
  )

/** Returns a prompt with the number and the parent of its next version in place of its versions. */
const toCurrentPrompt = ({ versions, ...prompt }: WorkspacePrompt): CurrentPrompt => {
  const current = versions.find(({ version_number }) => version_number === prompt.current_version)
  const last = versions.toSorted((a, b) => a.version_number - b.version_number).at(-1)
  return {
    ...prompt,
    next_version: Math.max(prompt.current_version, last?.version_number ?? 0) + 1,
    parent_version_id: (current ?? last)?.id ?? null
  }
}

/** Reduces the content of a whole workspace to its current state. */
export const toWorkspaceContent = (
  whole: Omit<WorkspaceContent, "prompts" | "importedStates"> & {
    readonly prompts: ReadonlyArray<WorkspacePrompt>
  },
  importedStates: ReadonlyArray<ImportedState> = []
): WorkspaceContent => ({
  folders: whole.folders,
  tags: whole.tags,
  fragments: whole.fragments,
  prompts: whole.prompts.map(toCurrentPrompt),
  importedStates
})
