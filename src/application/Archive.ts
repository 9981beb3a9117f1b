import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { BillingStatus, Tier } from "../domain/Access.ts"
import { ApiKeyId, KeyHash, UserId } from "../domain/ApiKey.ts"
import { isExactNumber, isStorableNumber } from "../domain/Json.ts"
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

const badNumber = "must hold numbers that JSON can write"

const faultOfJson = (value: unknown, depth = 0): string | undefined => {
  if (typeof value === "string") return faultOfText(value)
  if (typeof value === "number") return Number.isFinite(value) ? undefined : badNumber
  if (typeof value !== "object" || value === null) return undefined
  if (isExactNumber(value)) return isStorableNumber(value.rawJSON) ? undefined : badNumber
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

/** The parts of an archive. */
export const partsOf = function* (archive: Archive): Generator<ArchivePart> {
  yield { list: "workspace", item: archive.workspace }
  for (const list of archiveLists) for (const item of archive[list]) yield { list, item } as ArchivePart
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

/** How many faults of an archive are kept; more are only counted. */
export const maxFaults = 100

/** An archive that was refused, and so has changed nothing. Holds the first faults and how many there are. */
export interface BadArchive {
  readonly _tag: "BadArchive"
  readonly faults: ReadonlyArray<Fault>
  readonly count: number
}
export const BadArchive = (faults: ReadonlyArray<Fault>, count = faults.length): BadArchive => ({
  _tag: "BadArchive",
  faults,
  count
})

/** The first faults and the count of all of them. */
class FaultList {
  readonly first: Array<Fault> = []
  count = 0

  add(path: string, message: string): void {
    this.count++
    if (this.first.length < maxFaults) this.first.push({ path, message })
  }
}

const pathOf = (segments: ReadonlyArray<PropertyKey>, within: string): string =>
  segments.reduce<string>(
    (path, segment) => (typeof segment === "number" ? `${path}[${segment}]` : `${path}.${String(segment)}`),
    within
  )

/**
 * A value out of an archive's file, and where it is: an item of a list (`["prompts", 3]`), a member of the whole
 * (`["format"]`), or the whole at its end (`[]`). A list that is a member and the whole itself come without what came
 * before.
 */
export interface RawPart {
  readonly path: readonly [] | readonly [key: string] | readonly [list: ArchiveList, index: number]
  readonly value: unknown
}

const isList = (key: string): key is ArchiveList => (archiveLists as ReadonlyArray<string>).includes(key)

/** The parts of an archive that is one JSON value, in their order, whatever the order of its members. */
export function* rawParts(json: unknown): Generator<RawPart> {
  if (isObject(json)) {
    const known: ReadonlyArray<string> = ["format", "workspace", ...archiveLists]
    const keys = [...known.filter((key) => Object.hasOwn(json, key)), ...Object.keys(json)]
    for (const key of new Set(keys)) {
      const value = json[key]
      if (isList(key) && Array.isArray(value)) {
        for (const [index, item] of value.entries()) yield { path: [key, index], value: item }
      }
      yield { path: [key], value }
    }
  }
  yield { path: [], value: json }
}

const isObject = (json: unknown): json is Record<string, unknown> =>
  typeof json === "object" && json !== null && !Array.isArray(json)

/** The fields that keep their numbers as they are written. */
const freeFormFields: ReadonlyArray<string> = ["metadata", "variable_overrides"]

/** A number of an item is at most in a field of an object of a list of the item. */
const maxNumberDepth = 3

/** An item whose numbers outside free-form fields are JavaScript numbers: 1.0 is an integer. */
const roundNumbers = (value: unknown, depth = 0): unknown => {
  if (typeof value !== "object" || value === null) return value
  if (isExactNumber(value)) return Number(value.rawJSON)
  if (depth === maxNumberDepth) return value
  if (Array.isArray(value)) {
    const items = value.map((item) => roundNumbers(item, depth + 1))
    return items.some((item, index) => item !== value[index]) ? items : value
  }
  let isRounded = false
  const entries = Object.entries(value).map(([name, member]) => {
    const rounded = freeFormFields.includes(name) ? member : roundNumbers(member, depth + 1)
    isRounded ||= rounded !== member
    return [name, rounded] as const
  })
  return isRounded ? Object.fromEntries(entries) : value
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()
const decodeOptions = { errors: "all", onExcessProperty: "error" } as const
const decoder = <A>(schema: Schema.Codec<A, unknown>) => Schema.decodeUnknownResult(schema, decodeOptions)
const decoders = {
  format: decoder(Archive.fields.format),
  workspace: decoder(Archive.fields.workspace),
  users: decoder(ArchiveUser),
  api_keys: decoder(ArchiveKey),
  folders: decoder(ArchiveFolder),
  tags: decoder(ArchiveTag),
  fragments: decoder(ArchiveFragment),
  prompts: decoder(ArchivePrompt as unknown as Schema.Codec<ArchivePrompt>)
}

/** Ids that have come, of the kinds that may come once. */
class Seen {
  readonly #values = new Set<string | number>()

  /** Whether it has not come before. */
  add(value: string | number): boolean {
    if (this.#values.has(value)) return false
    this.#values.add(value)
    return true
  }
  has(value: string): boolean {
    return this.#values.has(value)
  }
}

/** Collects faults that show only where parts of an archive are held against each other; keeps of them the ids. */
class References {
  readonly faults = new FaultList()
  readonly #ids = new Map<string, Seen>()
  #workspace: string | undefined

  #report(path: string, message: string): void {
    this.faults.add(path, message)
  }

  #of(kind: string): Seen {
    let seen = this.#ids.get(kind)
    if (seen === undefined) {
      seen = new Seen()
      this.#ids.set(kind, seen)
    }
    return seen
  }

  #unique(path: string, kind: string, value: string): void {
    if (!this.#of(kind).add(value)) this.#report(path, "is there already")
  }

  #known(path: string, kind: ArchiveList, value: string | null): void {
    if (value !== null && !this.#of(kind).has(value)) this.#report(path, `is not in ${kind}`)
  }

  /** Holds a part against those before it. */
  check(part: ArchivePart, path: string): void {
    if (part.list === "workspace") {
      this.#workspace = part.item.id
      return
    }
    this.#unique(`${path}.id`, part.list, part.item.id)
    switch (part.list) {
      case "users":
        this.#unique(`${path}.email`, "emails", part.item.email.toLowerCase())
        break
      case "api_keys":
        this.#checkKey(part.item, path)
        break
      case "tags":
        this.#unique(`${path}.name`, "tag names", part.item.name)
        break
      case "prompts":
        this.#checkPrompt(part.item, path)
    }
  }

  #checkKey(key: ArchiveKey, path: string): void {
    this.#unique(`${path}.key_hash`, "hashes", key.key_hash)
    this.#known(`${path}.created_by`, "users", key.created_by)
    if (key.workspace_id !== null && key.workspace_id !== this.#workspace)
      this.#report(`${path}.workspace_id`, "is another workspace")
  }

  #checkPrompt(prompt: ArchivePrompt, path: string): void {
    this.#known(`${path}.folder_id`, "folders", prompt.folder_id)
    const tags = new Seen()
    prompt.tags.forEach((tag, i) => {
      if (!tags.add(tag)) this.#report(`${path}.tags[${i}]`, "is there already")
      this.#known(`${path}.tags[${i}]`, "tags", tag)
    })
    prompt.fragments.forEach((use, i) => {
      this.#unique(`${path}.fragments[${i}].id`, "uses", use.id)
      this.#known(`${path}.fragments[${i}].fragment_id`, "fragments", use.fragment_id)
    })
    const numbers = new Seen()
    const own = new Map(prompt.versions.map((version) => [version.id as string, version.version_number]))
    prompt.versions.forEach((version, i) => {
      if (!numbers.add(version.version_number))
        this.#report(`${path}.versions[${i}].version_number`, "is there already")
      this.#unique(`${path}.versions[${i}].id`, "versions", version.id)
      if (version.parent_version_id === null) return
      const parent = own.get(version.parent_version_id)
      if (parent === undefined)
        this.#report(`${path}.versions[${i}].parent_version_id`, "is no version of this prompt")
      else if (parent >= version.version_number)
        this.#report(`${path}.versions[${i}].parent_version_id`, "is not an earlier version")
    })
  }
}

const memberOrder: ReadonlyArray<string> = ["format", "workspace", ...archiveLists]

/**
 * Reads an archive part by part, as they come, and keeps of it no more than the ids and the first faults. The faults are
 * told at the end: of form first, and only where the form is right, of references between the parts.
 */
export class ArchiveReader {
  readonly #form = new FaultList()
  readonly #references = new References()
  readonly #members = new Set<string>()
  #latest = 0

  /** Whether a fault was found, so that the archive will be refused. */
  get isBad(): boolean {
    return this.#list.count > 0
  }

  /** Takes the next value; gives the part that it is, unless it is bad or none. */
  read({ path, value }: RawPart): ArchivePart | undefined {
    const [key, index] = path
    if (key === undefined) {
      this.#readWhole(value)
      return undefined
    }
    if (index === undefined) return this.#readMember(key, value)
    this.#enter(key)
    const item = this.#decode<unknown>(decoders[key as ArchiveList], `${key}[${index}]`, value)
    return item === undefined
      ? undefined
      : this.#check({ list: key, item } as ArchivePart, `${key}[${index}]`)
  }

  /** The refusal of the archive, for when all of it has come. Without faults, the archive is good. */
  refusal(): BadArchive {
    const { first, count } = this.#list
    return BadArchive(first, count)
  }

  get #list(): FaultList {
    return this.#form.count > 0 ? this.#form : this.#references.faults
  }

  #fault(path: string, message: string): void {
    this.#form.add(path, message)
  }

  /** What refers to others comes after them. */
  #enter(key: string): void {
    const at = memberOrder.indexOf(key)
    if (at < this.#latest) this.#fault(key, `must come before ${memberOrder[this.#latest]}`)
    else this.#latest = at
  }

  #readMember(key: string, value: unknown): ArchivePart | undefined {
    if (this.#members.has(key)) this.#fault(key, "is there already")
    this.#members.add(key)
    if (!memberOrder.includes(key)) this.#fault(key, "Expected no excess property")
    else this.#enter(key)
    if (isList(key) && !Array.isArray(value)) this.#fault(key, "Expected array")
    if (key === "format") this.#decode(decoders.format, key, value)
    if (key !== "workspace") return undefined
    const item = this.#decode(decoders.workspace, key, value)
    return item === undefined ? undefined : this.#check({ list: "workspace", item }, key)
  }

  #readWhole(value: unknown): void {
    if (!isObject(value)) this.#fault("", "Expected object")
    else for (const key of memberOrder) if (!this.#members.has(key)) this.#fault(key, "Missing key")
  }

  #decode<A>(
    decode: (value: unknown) => Result.Result<A, Schema.SchemaError>,
    path: string,
    value: unknown
  ): A | undefined {
    const decoded = decode(roundNumbers(value))
    if (Result.isSuccess(decoded)) return decoded.success
    for (const issue of format(decoded.failure.issue).issues) {
      this.#fault(pathOf((issue.path ?? []) as ReadonlyArray<PropertyKey>, path), issue.message)
    }
    return undefined
  }

  #check(part: ArchivePart, path: string): ArchivePart {
    this.#references.check(part, path)
    return part
  }
}

/** Reads an archive out of parsed JSON, whole or not at all. */
export const parseArchive = (json: unknown): Result.Result<Archive, BadArchive> => {
  const reader = new ArchiveReader()
  const parts: Array<ArchivePart> = []
  for (const raw of rawParts(json)) {
    const part = reader.read(raw)
    if (part !== undefined) parts.push(part)
  }
  return reader.isBad ? Result.fail(reader.refusal()) : Result.succeed(archiveOf(parts))
}
