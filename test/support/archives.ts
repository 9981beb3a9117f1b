import * as Effect from "effect/Effect"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { type Archive, archiveFormat, writeArchive } from "../../src/application/transfer/Archive.ts"
import type { BillingStatus, Tier } from "../../src/domain/Billing.ts"
import { PromptType } from "../../src/domain/Prompt.ts"
import type { WorkspacePrompt } from "../../src/domain/Workspace.ts"
import type {
  ContentEdit,
  CurrentPrompt,
  ImportedState,
  WorkspaceContent
} from "../../src/domain/WorkspaceContent.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import {
  archive,
  folder,
  fragment,
  fragmentBinding,
  instant,
  key,
  prompt,
  tag,
  user,
  version,
  workspace
} from "../../src/testing/archives.ts"

// The archives of the contract suites, and conversions for other tests.
export * from "../../src/testing/archives.ts"
export * from "./generatedArchives.ts"

/**
 * Returns a workspace that has every kind of item, and keys in every state. The ids, keys and emails are new in each
 * call. The times and the other texts are always the same.
 */
export const sample = (overrides: { readonly tier?: Tier; readonly billing_status?: BillingStatus } = {}) => {
  const home = workspace({ name: "Sample", ...overrides })
  const ada = user()
  const ben = user({ must_reset_password: true })
  const revoked_at = instant("2026-02-01T00:00:00.000Z")
  const keys = {
    active: key(home.id, ada, { name: "Production" }),
    second: key(home.id, ada, { name: "Staging" }),
    revoked: key(home.id, ada, { revoked_at }),
    ownerMustReset: key(home.id, ben),
    revokedOwnerMustReset: key(home.id, ben, { revoked_at }),
    legacy: key(null, ada),
    legacyRevoked: key(null, ada, { revoked_at }),
    legacyOwnerMustReset: key(null, ben)
  }
  const support = folder({ name: "Support" })
  const empty = folder({ name: "Empty" })
  const production = tag("production", { color: "#ff0000" })
  const draft = tag("Draft", { color: "#00FF00" })
  const german = tag("größe", { color: "#0000ff" })
  const tone = fragment("Answer in a {{tone}} tone, in {{ language }}.", { name: "Tone" })
  const limits = fragment("Use at most {{words}} words. {{unbound}}", { name: "Limits" })
  const first = version(1, { created_at: instant("2026-01-01T00:00:00.000Z") })
  const secondVersion = version(2, {
    parent_version_id: first.id,
    change_source: "ai-improve",
    metadata: { applied_suggestions: 3, nested: { list: [1, "two", null, true] } },
    created_at: instant("2026-01-02T00:00:00.000Z")
  })
  const third = version(3, {
    parent_version_id: secondVersion.id,
    created_at: instant("2026-01-03T00:00:00.000Z")
  })
  const greeting = prompt({
    title: "Greeting",
    description: "Greets a customer",
    current_content: "Greet {{customer}}.",
    current_version: 3,
    folder_id: support.id,
    is_favorite: true,
    sort_order: -1,
    updated_at: instant("2026-01-09T00:00:00.001Z"),
    tags: [production.id, german.id, draft.id],
    fragments: [
      fragmentBinding(limits, 2, { variable_overrides: { words: 120, unbound: null } }),
      fragmentBinding(tone, 1, { variable_overrides: { tone: "friendly", language: "{{tone}}" } }),
      fragmentBinding(tone, 2, { variable_overrides: { tone: true, language: "Deutsch" } })
    ],
    versions: [first, third, secondVersion]
  })
  const ofEveryType = PromptType.literals.map((prompt_type, index) =>
    prompt({
      title: `A ${prompt_type} prompt`,
      prompt_type,
      sort_order: index,
      folder_id: index % 2 === 0 ? support.id : null,
      tags: index % 3 === 0 ? [production.id] : [],
      updated_at: instant(`2026-01-0${1 + Math.floor(index / 2)}T00:00:00.000Z`),
      versions: [version(1)]
    })
  )
  const retired = prompt({
    title: "Retired",
    is_archived: true,
    folder_id: support.id,
    tags: [production.id],
    updated_at: instant("2026-01-10T00:00:00.000Z"),
    versions: [version(1)]
  })
  const stored = archive({
    workspace: home,
    users: [ada, ben],
    api_keys: Object.values(keys).map(({ stored }) => stored),
    folders: [support, empty],
    tags: [production, draft, german],
    fragments: [tone, limits],
    prompts: [greeting, ...ofEveryType, retired]
  })
  return { keys, archive: stored }
}

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

/** Returns `content` with the ids of `other` for the first `count` items of each list. */
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

/** Makes an edit that contains only `changes`. */
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

/** Returns the current content of a workspace, without its versions. */
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
