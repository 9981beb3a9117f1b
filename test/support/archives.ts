import { createHash, randomBytes, randomUUID } from "node:crypto"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import {
  type Archive,
  archiveFormat,
  archiveFromExport,
  archiveFromParts,
  toWorkspaceParts
} from "../../src/application/formats/Archive.ts"
import { ArchiveReader } from "../../src/application/formats/ArchiveReader.ts"
import { ArchiveWriter } from "../../src/application/formats/ArchiveWriter.ts"
import { toRawParts } from "../../src/application/formats/RawPart.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import { type ApiKey, type ApiKeyId, type KeyHash, keyPrefix, type UserId } from "../../src/domain/ApiKey.ts"
import type { BillingStatus, Tier } from "../../src/domain/Billing.ts"
import type { FolderId } from "../../src/domain/FolderId.ts"
import type { InvalidContent } from "../../src/domain/Problem.ts"
import { type PromptId, PromptType, type TagId } from "../../src/domain/Prompt.ts"
import type { Timestamp } from "../../src/domain/Timestamp.ts"
import type { VersionId, VersionNumber } from "../../src/domain/Version.ts"
import type {
  Folder,
  Fragment,
  PromptFragment,
  PromptVersion,
  StoredKey,
  User,
  Workspace,
  WorkspacePrompt,
  WorkspaceTag
} from "../../src/domain/Workspace.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import { type ExportPart, toExportParts, type WorkspacePart } from "../../src/domain/WorkspaceParts.ts"

/** Returns a random id of any kind. */
export const newId = <Id extends string>(): Id => randomUUID() as string as Id

/** Compares items by id, for sorting. */
export const compareIds = (a: { readonly id: string }, b: { readonly id: string }): number =>
  a.id < b.id ? -1 : 1

/** Converts any text that `Date` parses to a timestamp. */
export const instant = (text: string): Timestamp => new Date(text).toISOString() as Timestamp

export const versionNumber = (number: number): VersionNumber => number as VersionNumber

export const folder = (overrides: Partial<Folder> = {}): Folder => ({
  id: newId<FolderId>(),
  name: "Folder",
  ...overrides
})

export const tag = (name: string, overrides: Partial<WorkspaceTag> = {}): WorkspaceTag => ({
  id: newId<TagId>(),
  name,
  color: "#0a1B2c",
  ...overrides
})

export const fragment = (content: string, overrides: Partial<Fragment> = {}): Fragment => ({
  id: newId(),
  name: "Fragment",
  content,
  ...overrides
})

export const fragmentBinding = (
  { id }: Fragment,
  position: number,
  overrides: Partial<PromptFragment> = {}
): PromptFragment => ({
  id: newId(),
  fragment_id: id,
  position,
  variable_overrides: {},
  ...overrides
})

export const version = (number: number, overrides: Partial<PromptVersion> = {}): PromptVersion => ({
  id: newId<VersionId>(),
  version_number: versionNumber(number),
  content: `Content of version ${number}`,
  change_summary: `Change ${number}`,
  change_source: "manual",
  parent_version_id: null,
  metadata: {},
  created_at: instant("2026-03-01T12:00:00.000Z"),
  ...overrides
})

export const prompt = (overrides: Partial<WorkspacePrompt> = {}): WorkspacePrompt => ({
  id: newId<PromptId>(),
  title: "Title",
  description: "Description",
  current_content: "Content",
  prompt_type: "system",
  target_model: "model",
  intent: "intent",
  current_version: 1,
  folder_id: null,
  is_favorite: false,
  is_archived: false,
  sort_order: 0,
  created_at: instant("2026-01-01T00:00:00.000Z"),
  updated_at: instant("2026-01-02T00:00:00.000Z"),
  tags: [],
  fragments: [],
  versions: [],
  ...overrides
})

export const user = (overrides: Partial<User> = {}): User => {
  const id = overrides.id ?? newId<UserId>()
  return { id, email: `user-${id}@example.com`, must_reset_password: false, ...overrides }
}

/** A stored key and its plaintext. */
export interface Key {
  readonly plaintext: ApiKey
  readonly stored: StoredKey
}

/** Returns a random key of a workspace or, for null, of no workspace. */
export const key = (workspace: WorkspaceId | null, owner: User, overrides: Partial<StoredKey> = {}): Key => {
  const hex = randomBytes(32).toString("hex")
  const plaintext = `${keyPrefix}${hex}` as ApiKey
  return {
    plaintext,
    stored: {
      id: newId<ApiKeyId>(),
      workspace_id: workspace,
      created_by: owner.id,
      name: "Key",
      key_hash: createHash("sha256").update(plaintext).digest("hex") as KeyHash,
      key_start: hex.slice(0, 4),
      key_end: hex.slice(-4),
      created_at: instant("2026-01-01T00:00:00.000Z"),
      revoked_at: null,
      expires_at: null,
      ...overrides
    }
  }
}

export const workspace = (overrides: Partial<Workspace> = {}): Workspace => ({
  id: newId<WorkspaceId>(),
  name: "Workspace",
  tier: "solo",
  billing_status: "active",
  ...overrides
})

/** Returns the archive of an empty workspace with the given fields replaced. */
export const archive = (overrides: Partial<Archive> = {}): Archive => ({
  format: archiveFormat,
  workspace: workspace(),
  users: [],
  api_keys: [],
  folders: [],
  tags: [],
  fragments: [],
  prompts: [],
  ...overrides
})

/** Texts that an encoding error in a round trip through a database would change. */
export const awkwardTexts: ReadonlyArray<string> = [
  "",
  " leading and trailing ",
  "\n\r\n\t\u000b\u000c\u0001\u007f\u0085",
  "$& $1 $` $' $$",
  "'; drop table prompts; -- \" ` \\ \\n \\u0000 \\\\x",
  "%s %_ {0} $1 $2 ? :name @name",
  "{{slot}} {{{x}}} {{ }} }}{{",
  '{"json": [null, "\\u0000"]}',
  "äöü ß é e\u0301 İ ı ſ Σς",
  "日本語 العربية עברית ไทย",
  "😀👩‍👩‍👧‍👦 \u{10ffff} \ufffd \ufeff \u200b \u2028 \u2029",
  "null",
  "\\N",
  "__proto__"
]

/**
 * Returns a workspace with every kind of item: prompts of every type, some favorites, some archived, inside and
 * outside folders, with no, one and several tags; a chain of versions; fragments with and without values and one
 * that is used twice; and keys in every state. Its ids are new; its times and texts are always the same.
 */
export const sample = (
  overrides: { readonly tier?: Tier; readonly billing_status?: BillingStatus } = {}
): { readonly archive: Archive; readonly keys: Record<SampleKey, Key> } => {
  const home = workspace({ name: "Sample", ...overrides })
  const ada = user()
  const ben = user({ must_reset_password: true })
  const revoked_at = instant("2026-02-01T00:00:00.000Z")
  const keys: Record<SampleKey, Key> = {
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
  return {
    keys,
    archive: archive({
      workspace: home,
      users: [ada, ben],
      api_keys: Object.values(keys).map(({ stored }) => stored),
      folders: [support, empty],
      tags: [production, draft, german],
      fragments: [tone, limits],
      prompts: [greeting, ...ofEveryType, retired]
    })
  }
}

export type SampleKey =
  | "active"
  | "second"
  | "revoked"
  | "ownerMustReset"
  | "revokedOwnerMustReset"
  | "legacy"
  | "legacyRevoked"
  | "legacyOwnerMustReset"

// Generated archives

/** Replaces the characters that PostgreSQL and UTF-8 cannot store. */
export const storable = (text: string): string => text.replaceAll("\0", "\u2400").toWellFormed()

/** Any text that an archive may contain. */
export const texts: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.all([Arbitrary.schema(Schema.Natural), Arbitrary.schema(Schema.String)]),
  ([pick, text]) => (pick % 3 === 0 ? awkwardTexts[pick % awkwardTexts.length]! : storable(text))
)

/**
 * Replaces backslashes too: after a name with a backslash, JSON.parse reads other escapes in names as a backslash,
 * and a test could not parse what it wrote (nodejs/node#63785).
 */
const storableName = (name: string): string => storable(name).replaceAll("\\", "/")

const storableJson = (value: Schema.Json): Schema.Json => {
  if (typeof value === "string") return storable(value)
  if (typeof value === "number") return value + 0
  if (typeof value !== "object" || value === null) return value
  if (Array.isArray(value)) return value.map(storableJson)
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [storableName(name), storableJson(member)])
  )
}

/** A free-form JSON object, such as `metadata` and `variable_overrides`. */
export const freeForm: Arbitrary.Arbitrary<Record<string, Schema.Json>> = Arbitrary.map(
  Arbitrary.schema(Schema.Record(Schema.String, Schema.Json)),
  (map) => storableJson(map) as Record<string, Schema.Json>
)

/** A few times, so that ties are common. The first and the last are the earliest and the latest timestamp. */
const instants: ReadonlyArray<Timestamp> = [
  "0001-01-01T00:00:00.000Z",
  "1969-12-31T23:59:59.999Z",
  "2026-02-28T23:59:59.999Z",
  "2026-03-01T00:00:00.000Z",
  "2026-03-01T00:00:00.001Z",
  "9999-12-31T23:59:59.999Z"
].map((text) => text as Timestamp)

const tagNames: ReadonlyArray<string> = [
  "production",
  "Production",
  "prod",
  "production ",
  "ä",
  "a\u0308",
  "😀",
  "\ufffd",
  "%",
  "'",
  "\\",
  "x".repeat(256)
]

const Natural = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))
const Int32 = Schema.Int.check(Schema.isBetween({ minimum: -2147483648, maximum: 2147483647 }))

const generatedVersion = Arbitrary.all({
  gap: Arbitrary.schema(Natural),
  parent: Arbitrary.schema(Natural),
  created: Arbitrary.schema(Natural),
  content: texts,
  change_summary: texts,
  change_source: texts,
  metadata: freeForm
})

const generatedUse = Arbitrary.all({
  fragment: Arbitrary.schema(Natural),
  position: Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: -2, maximum: 2 }))),
  variable_overrides: freeForm
})

const generatedPrompt = Arbitrary.all({
  title: texts,
  description: texts,
  current_content: texts,
  target_model: texts,
  intent: texts,
  prompt_type: Arbitrary.schema(PromptType),
  current_version: Arbitrary.schema(Natural),
  sort_order: Arbitrary.schema(Int32),
  folder: Arbitrary.schema(Natural),
  is_favorite: Arbitrary.schema(Schema.Boolean),
  archived: Arbitrary.schema(Natural),
  created: Arbitrary.schema(Natural),
  updated: Arbitrary.schema(Natural),
  tags: Arbitrary.array(Arbitrary.schema(Natural), { maxLength: 4 }),
  fragments: Arbitrary.array(generatedUse, { maxLength: 4 }),
  versions: Arbitrary.array(generatedVersion, { maxLength: 4 })
})

const pick = <A>(from: ReadonlyArray<A>, index: number): A => from[index % from.length]!

const distinct = <A>(items: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(items)]

/**
 * Archives of every shape that `ArchiveReader` accepts: equal times, equal folder names, awkward texts, archived
 * prompts, versions with gaps in their numbers. The ids are new each time, even while shrinking, so that no archive
 * conflicts with an earlier one in a shared database.
 */
export const archives: Arbitrary.Arbitrary<Archive> = Arbitrary.map(
  Arbitrary.all({
    folders: Arbitrary.array(texts, { maxLength: 3 }),
    tags: Arbitrary.array(Arbitrary.schema(Natural), { maxLength: 5 }),
    fragments: Arbitrary.array(texts, { maxLength: 3 }),
    prompts: Arbitrary.array(generatedPrompt, { maxLength: 8 })
  }),
  (plan): Archive => {
    const folders = plan.folders.map((name) =>
      folder({ name: `Folder ${name}`.slice(0, 200).toWellFormed() })
    )
    const tags = distinct(plan.tags.map((index) => pick(tagNames, index))).map((name) => tag(name))
    const fragments = plan.fragments.map((content) => fragment(content))

    const makeVersions = (
      planned: (typeof plan.prompts)[number]["versions"]
    ): ReadonlyArray<PromptVersion> => {
      const versions: Array<PromptVersion> = []
      let number = 0
      for (const { gap, parent, created, ...texts } of planned) {
        number += 1 + (gap % 3)
        versions.push({
          ...texts,
          id: newId(),
          version_number: versionNumber(number),
          parent_version_id: [...versions.map(({ id }) => id), null][parent % (versions.length + 1)]!,
          created_at: pick(instants, created)
        })
      }
      return versions
    }

    const prompts = plan.prompts.map((planned): WorkspacePrompt => {
      const { folder, archived, created, updated, ...fields } = planned
      return {
        ...fields,
        id: newId(),
        folder_id: pick([null, ...folders.map(({ id }) => id)], folder),
        is_archived: archived % 4 === 3,
        created_at: pick(instants, created),
        updated_at: pick(instants, updated),
        tags: tags.length === 0 ? [] : distinct(planned.tags.map((index) => pick(tags, index).id)),
        fragments:
          fragments.length === 0
            ? []
            : planned.fragments.map(({ fragment, ...rest }) => ({
                ...rest,
                id: newId(),
                fragment_id: pick(fragments, fragment).id
              })),
        versions: makeVersions(planned.versions)
      }
    })
    return archive({ folders, tags, fragments, prompts })
  }
)

// Conversions of archives

/** Streams the parts of an archive's workspace, as `WorkspaceStore.importWorkspace` takes them. */
export const toPartStream = (archive: Archive): Stream.Stream<WorkspacePart> =>
  Stream.fromIterable(toWorkspaceParts(archive))

/** Returns the text of an archive's file, as an export writes it. */
export const toArchiveText = (archive: Archive): string => {
  const writer = new ArchiveWriter()
  const texts = [...toExportParts(toWorkspaceParts(archive))].map((part) => writer.write(part))
  return texts.join("") + writer.end()
}

/** Returns an archive with its members in another order: each number of `order` moves one of the members to the end. */
export const shuffleMembers = (archive: Archive, order: ReadonlyArray<number>): Archive => {
  const members = Object.entries(archive)
  for (const number of order) members.push(...members.splice(number % members.length, 1))
  return Object.fromEntries(members) as unknown as Archive
}

/** Reads an archive from parsed JSON. Fails if any part is invalid. */
export const parseArchive = (json: unknown): Result.Result<Archive, InvalidContent> => {
  const reader = new ArchiveReader()
  const parts = [...toRawParts(json)].map((raw) => reader.read(raw)).filter((part) => part !== undefined)
  return reader.hasProblems ? Result.fail(reader.toError()) : Result.succeed(archiveFromParts(parts))
}

/** Exports a workspace from the store as an archive. */
export const exportArchive = Effect.fnUntraced(function* (workspace: WorkspaceId) {
  const { exportWorkspace } = yield* WorkspaceStore
  const exported: Array<ExportPart> = []
  yield* exportWorkspace(workspace, (parts) => Effect.sync(() => void exported.push(...parts)))
  return archiveFromExport(exported)
})
