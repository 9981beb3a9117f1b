import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { BillingStatus, Tier } from "../domain/Access.ts"
import { ApiKeyId, KeyHash, UserId } from "../domain/ApiKey.ts"
import { FolderId, Prompt, PromptId, Tag, TagId, WorkspaceId } from "../domain/Prompt.ts"
import { isWithinTimestamps, Timestamp, timestampOf } from "../domain/Timestamp.ts"
import { Uuid } from "../domain/Uuid.ts"
import { VersionId, VersionNumber } from "../domain/Version.ts"

/** The largest single text that an archive may bring, in bytes of UTF-8. */
export const maxTextBytes = 16 * 1024 * 1024

/** How deep free-form JSON may nest. */
const maxDepth = 100

const faultOfText = (text: string): string | undefined => {
  if (text.includes("\0")) return "must not contain the NUL character"
  if (!text.isWellFormed()) return "must be well-formed Unicode"
  if (text.length * 3 > maxTextBytes && Buffer.byteLength(text) > maxTextBytes)
    return `must be at most ${maxTextBytes} bytes of UTF-8`
  return undefined
}

const faultOfJson = (value: unknown, depth = 0): string | undefined => {
  if (typeof value === "string") return faultOfText(value)
  if (typeof value === "number" && !Number.isFinite(value)) return "must hold numbers that JSON can write"
  if (typeof value !== "object" || value === null) return undefined
  if (depth === maxDepth) return `must nest at most ${maxDepth} levels deep`
  for (const [key, member] of Object.entries(value)) {
    const fault = faultOfText(key) ?? faultOfJson(member, depth + 1)
    if (fault !== undefined) return fault
  }
  return undefined
}

const Text = Schema.String.check(Schema.makeFilter(faultOfText))
const Name = Text.check(
  Schema.isMinLength(1, { message: "must not be empty" }),
  Schema.isMaxLength(256, { message: "must be at most 256 characters" })
)
const FreeForm = Schema.Record(Schema.String, Schema.Unknown).check(
  Schema.makeFilter((map: object) => faultOfJson(map))
)

/** An id in any case, held in lower case. */
const id = <B extends string>(branded: Schema.Codec<B, string>) =>
  Schema.String.pipe(
    Schema.decodeTo(Uuid, SchemaTransformation.toLowerCase()),
    Schema.decodeTo(branded, SchemaTransformation.passthrough() as never)
  ) as unknown as Schema.Codec<B, string>

const iso8601 = /^(\d{4})-(\d\d)-(\d\d)T\d\d:\d\d(?::\d\d(?:\.\d+)?)?(?:Z|[+-]\d\d:\d\d)$/

const millisOf = (text: string): number => {
  const parts = iso8601.exec(text)
  if (parts === null) return Number.NaN
  const [year, month, day] = [Number(parts[1]), Number(parts[2]), Number(parts[3])]
  const lastDay = new Date(Date.UTC(2000, month, 0)).setUTCFullYear(year, month, 0)
  return day > new Date(lastDay).getUTCDate() ? Number.NaN : Date.parse(text)
}

/** Any ISO 8601 instant with its offset, held as UTC with milliseconds; finer digits are cut. */
const Time = Schema.String.check(
  Schema.makeFilter((text: string) =>
    isWithinTimestamps(millisOf(text))
      ? undefined
      : "must be an ISO 8601 time with an offset, in the years 0001 to 9999"
  )
).pipe(
  Schema.decodeTo(
    Timestamp,
    SchemaTransformation.transform({
      decode: (text: string) => timestampOf(millisOf(text)) as string,
      encode: (text: string) => text
    })
  )
)

const HexEnd = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{4}$/, { message: "must be 4 lower-case hexadecimal digits" })
)

export const ArchiveUser = Schema.Struct({ id: id(UserId), email: Name, must_reset_password: Schema.Boolean })
export type ArchiveUser = typeof ArchiveUser.Type

export const ArchiveKey = Schema.Struct({
  id: id(ApiKeyId),
  workspace_id: Schema.NullOr(id(WorkspaceId)),
  created_by: id(UserId),
  name: Text,
  key_hash: KeyHash,
  key_start: HexEnd,
  key_end: HexEnd,
  created_at: Time,
  revoked_at: Schema.NullOr(Time)
})
export type ArchiveKey = typeof ArchiveKey.Type

export const ArchiveFolder = Schema.Struct({ id: id(FolderId), name: Name })
export const ArchiveTag = Schema.Struct({ id: id(TagId), name: Name, color: Tag.fields.color })
export const ArchiveFragment = Schema.Struct({ id: id(Uuid), name: Name, content: Text })

export const ArchiveVersion = Schema.Struct({
  id: id(VersionId),
  version_number: VersionNumber,
  content: Text,
  change_summary: Text,
  change_source: Text,
  parent_version_id: Schema.NullOr(id(VersionId)),
  metadata: FreeForm,
  created_at: Time
})

export const ArchivePrompt = Schema.Struct({
  id: id(PromptId),
  title: Text,
  description: Text,
  current_content: Text,
  prompt_type: Prompt.fields.prompt_type,
  target_model: Text,
  intent: Text,
  current_version: Prompt.fields.current_version,
  folder_id: Schema.NullOr(id(FolderId)),
  is_favorite: Schema.Boolean,
  is_archived: Schema.Boolean,
  sort_order: Prompt.fields.sort_order,
  created_at: Time,
  updated_at: Time,
  tags: Schema.Array(id(TagId)),
  fragments: Schema.Array(
    Schema.Struct({
      id: id(Uuid),
      fragment_id: id(Uuid),
      position: Prompt.fields.sort_order,
      variable_overrides: FreeForm
    })
  ),
  versions: Schema.Array(ArchiveVersion)
})
export type ArchivePrompt = typeof ArchivePrompt.Type

export const archiveFormat = "prompt-retrieval/workspace@1"

/** A whole workspace as a file (DESIGN.md section 9). */
export const Archive = Schema.Struct({
  format: Schema.Literal(archiveFormat),
  workspace: Schema.Struct({ id: id(WorkspaceId), name: Name, tier: Tier, billing_status: BillingStatus }),
  users: Schema.Array(ArchiveUser),
  api_keys: Schema.Array(ArchiveKey),
  folders: Schema.Array(ArchiveFolder),
  tags: Schema.Array(ArchiveTag),
  fragments: Schema.Array(ArchiveFragment),
  prompts: Schema.Array(ArchivePrompt)
})
export type Archive = typeof Archive.Type

/** An archive's lists, in the order in which they come. */
export const archiveLists = ["users", "api_keys", "folders", "tags", "fragments", "prompts"] as const
export type ArchiveList = (typeof archiveLists)[number]

/** One item of an archive; the workspace comes first, then each list in the order of `archiveLists`. */
export type ArchivePart =
  | { readonly list: "workspace"; readonly item: Archive["workspace"] }
  | { [List in ArchiveList]: { readonly list: List; readonly item: Archive[List][number] } }[ArchiveList]

/** An archive as a whole out of its parts. */
export const archiveOf = (parts: ReadonlyArray<ArchivePart>): Archive => {
  const items = Map.groupBy(parts, ({ list }) => list)
  const of = (list: ArchivePart["list"]) => (items.get(list) ?? []).map(({ item }) => item)
  return {
    format: archiveFormat,
    workspace: of("workspace")[0],
    ...Object.fromEntries(archiveLists.map((list) => [list, of(list)]))
  } as Archive
}

/** Writes an archive's parts as its file, an item a line, so that two of them compare well. */
export const archiveWriter = () => {
  let at = -1
  let empty = true
  const moveTo = (index: number): string => {
    let text = ""
    for (; at < index; at++) {
      text += at === -1 ? "" : empty ? "]" : "\n]"
      text += at + 1 < archiveLists.length ? `,\n"${archiveLists[at + 1]}":[` : "}\n"
      empty = true
    }
    return text
  }
  return {
    write: ({ list, item }: ArchivePart): string => {
      if (list === "workspace") return `{"format":"${archiveFormat}",\n"workspace":${JSON.stringify(item)}`
      const text = `${moveTo(archiveLists.indexOf(list))}${empty ? "" : ","}\n${JSON.stringify(item)}`
      empty = false
      return text
    },
    end: (): string => moveTo(archiveLists.length)
  }
}

/** What is wrong with an archive, and where: `prompts[3].versions[0].created_at`. */
export interface Fault {
  readonly path: string
  readonly message: string
}

/** An archive that was refused, and so has changed nothing. Holds every fault that was found. */
export interface BadArchive {
  readonly _tag: "BadArchive"
  readonly faults: ReadonlyArray<Fault>
}
export const BadArchive = (faults: ReadonlyArray<Fault>): BadArchive => ({ _tag: "BadArchive", faults })

const pathOf = (segments: ReadonlyArray<PropertyKey>): string =>
  segments.reduce<string>(
    (path, segment) =>
      typeof segment === "number"
        ? `${path}[${segment}]`
        : path === ""
          ? String(segment)
          : `${path}.${String(segment)}`,
    ""
  )

const decode = Schema.decodeUnknownResult(Archive, { errors: "all", onExcessProperty: "error" })
const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** Collects faults that show only where parts of an archive are held against each other. */
class References {
  readonly faults: Array<Fault> = []

  report(path: string, message: string): void {
    this.faults.push({ path, message })
  }

  /** Reports what comes a second time, and gives the set of all. */
  unique<A>(
    list: string,
    items: ReadonlyArray<A>,
    field: string,
    value: (item: A) => string | number
  ): Set<string | number> {
    const seen = new Set<string | number>()
    items.forEach((item, index) => {
      const key = value(item)
      if (seen.has(key)) this.report(`${list}[${index}]${field}`, "is there already")
      seen.add(key)
    })
    return seen
  }

  known(path: string, set: ReadonlySet<string | number>, value: string | null, where: string): void {
    if (value !== null && !set.has(value)) this.report(path, `is not in ${where}`)
  }
}

const checkReferences = (archive: Archive): ReadonlyArray<Fault> => {
  const check = new References()
  const users = check.unique("users", archive.users, ".id", (user) => user.id)
  check.unique("users", archive.users, ".email", (user) => user.email.toLowerCase())
  check.unique("api_keys", archive.api_keys, ".id", (key) => key.id)
  check.unique("api_keys", archive.api_keys, ".key_hash", (key) => key.key_hash)
  archive.api_keys.forEach((key, index) => {
    check.known(`api_keys[${index}].created_by`, users, key.created_by, "users")
    if (key.workspace_id !== null && key.workspace_id !== archive.workspace.id)
      check.report(`api_keys[${index}].workspace_id`, "is another workspace")
  })
  const folders = check.unique("folders", archive.folders, ".id", (folder) => folder.id)
  const tags = check.unique("tags", archive.tags, ".id", (tag) => tag.id)
  check.unique("tags", archive.tags, ".name", (tag) => tag.name)
  const fragments = check.unique("fragments", archive.fragments, ".id", (fragment) => fragment.id)
  check.unique("prompts", archive.prompts, ".id", (prompt) => prompt.id)
  const uses = new Set<string>()
  const versionIds = new Set<string>()
  archive.prompts.forEach((prompt, index) => {
    const path = `prompts[${index}]`
    check.known(`${path}.folder_id`, folders, prompt.folder_id, "folders")
    check.unique(`${path}.tags`, prompt.tags, "", (tag) => tag)
    prompt.tags.forEach((tag, i) => {
      check.known(`${path}.tags[${i}]`, tags, tag, "tags")
    })
    prompt.fragments.forEach((use, i) => {
      if (uses.has(use.id)) check.report(`${path}.fragments[${i}].id`, "is there already")
      uses.add(use.id)
      check.known(`${path}.fragments[${i}].fragment_id`, fragments, use.fragment_id, "fragments")
    })
    check.unique(`${path}.versions`, prompt.versions, ".version_number", (version) => version.version_number)
    const own = new Map(prompt.versions.map((version) => [version.id as string, version.version_number]))
    prompt.versions.forEach((version, i) => {
      if (versionIds.has(version.id)) check.report(`${path}.versions[${i}].id`, "is there already")
      versionIds.add(version.id)
      if (version.parent_version_id === null) return
      const parent = own.get(version.parent_version_id)
      if (parent === undefined)
        check.report(`${path}.versions[${i}].parent_version_id`, "is no version of this prompt")
      else if (parent >= version.version_number)
        check.report(`${path}.versions[${i}].parent_version_id`, "is not an earlier version")
    })
  })
  return check.faults
}

/**
 * Reads an archive out of parsed JSON, whole or not at all. Every fault is told: of form first, and only where the
 * form is right, of references between its parts.
 */
export const parseArchive = (json: unknown): Result.Result<Archive, BadArchive> => {
  const decoded = decode(json)
  if (Result.isFailure(decoded)) {
    const issues = format(decoded.failure.issue).issues
    return Result.fail(
      BadArchive(
        issues.map((issue) => ({
          path: pathOf((issue.path ?? []) as ReadonlyArray<PropertyKey>),
          message: issue.message
        }))
      )
    )
  }
  const faults = checkReferences(decoded.success)
  return faults.length > 0 ? Result.fail(BadArchive(faults)) : Result.succeed(decoded.success)
}
