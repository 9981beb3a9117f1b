import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { ApiKeyId, KeyHash, UserId } from "./ApiKey.ts"
import { BillingStatus, Tier } from "./Billing.ts"
import { FolderId, Prompt, PromptId, Tag, TagId } from "./Prompt.ts"
import { countJsonBytes, sizes } from "./Sizes.ts"
import { isRepresentable, normalizeTime, parseTime, Timestamp, timePattern } from "./Timestamp.ts"
import { inAnyCase, Uuid } from "./Uuid.ts"
import { VersionId, VersionNumber } from "./Version.ts"
import { WorkspaceId } from "./WorkspaceId.ts"

// The items of a workspace, as operators import, edit and export them. Callers of the API see prompts and their versions
// as `Prompt` and `Version`. In an archive, ids can contain uppercase letters, and times can be any ISO 8601 times with
// an offset.

/** An ISO 8601 time with an offset, in the years 0001 to 9999. Decodes to UTC, and drops digits after milliseconds. */
const Time = Schema.String.check(
  Schema.makeFilter(
    (text: string) =>
      isRepresentable(parseTime(text))
        ? undefined
        : "must be an ISO 8601 time with an offset, in the years 0001 to 9999",
    // The pattern also accepts times that do not exist, such as a time on February 30.
    { toJsonSchema: () => [{ pattern: timePattern }, true] }
  )
)
  .annotate({ description: "ISO 8601 time with an offset. Digits after milliseconds are dropped." })
  .pipe(
    Schema.decodeTo(
      Timestamp,
      SchemaTransformation.transform<string, string>({ decode: normalizeTime, encode: (text) => text })
    )
  )

const findTextProblem = (text: string): string | undefined => {
  if (text.includes("\0")) return "must not contain the NUL character"
  return text.isWellFormed() ? undefined : "must be well-formed Unicode"
}

const findJsonProblem = (value: unknown, depth = 0): string | undefined => {
  if (typeof value === "string") return findTextProblem(value)
  if (typeof value === "number")
    return Number.isFinite(value) ? undefined : "must hold numbers that JSON can write"
  if (typeof value !== "object" || value === null) return undefined
  if (depth === sizes.jsonLevels) return `must nest at most ${sizes.jsonLevels} levels deep`
  for (const [key, member] of Object.entries(value)) {
    const problem = findTextProblem(key) ?? findJsonProblem(member, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Text that PostgreSQL can store: well-formed Unicode without NUL. */
const AnyText = Schema.String.check(Schema.makeFilter(findTextProblem))

const makeText = (maxBytes: number) =>
  AnyText.check(
    Schema.makeFilter((text: string) =>
      Buffer.byteLength(text) <= maxBytes ? undefined : `must be at most ${maxBytes} bytes of UTF-8`
    )
  )

/** A short text, such as a title. */
const ShortText = AnyText.check(
  Schema.isMaxCodePoints(sizes.nameLength, { message: `must be at most ${sizes.nameLength} characters` })
)

/** A description of a prompt or of a change. */
const Summary = makeText(sizes.summaryBytes)

/** Matches a slot as the check in the database does. The name has 1 to 256 code points and can be blank. */
const countedSlotPattern = /\{\{[^{}]{1,256}\}\}/gu

/** The content of a prompt, a version or a fragment. */
const Content = makeText(sizes.contentBytes).check(
  Schema.makeFilter((text: string) =>
    (text.match(countedSlotPattern)?.length ?? 0) <= sizes.contentSlots
      ? undefined
      : `must have at most ${sizes.contentSlots} slots`
  )
)

/** A JSON object with any members that PostgreSQL can store, within the limits in `sizes`. */
const FreeForm = Schema.Record(Schema.String, Schema.Unknown).check(
  Schema.makeFilter((map: object) => {
    const problem = findJsonProblem(map)
    if (problem !== undefined) return problem
    return countJsonBytes(map) <= sizes.jsonBytes
      ? undefined
      : `must be at most ${sizes.jsonBytes} bytes of JSON`
  })
)

/** Makes the schema of a list of at most `maxItems` items. */
export const makeList = <A extends Schema.Constraint>(item: A, maxItems: number) =>
  Schema.Array(item).check(Schema.isMaxLength(maxItems, { message: `must have at most ${maxItems} items` }))

/** The first four or the last four digits of a key. */
const KeyEnd = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{4}$/u, { message: "must be 4 lowercase hexadecimal digits" })
)

/** A workspace without its content. */
export const Workspace = Schema.Struct({
  id: inAnyCase(WorkspaceId),
  name: ShortText,
  tier: Tier,
  billing_status: BillingStatus
})
export type Workspace = typeof Workspace.Type

/** An owner of API keys. Emails are compared case-insensitively. */
export const User = Schema.Struct({
  id: inAnyCase(UserId),
  email: ShortText.check(Schema.isMinLength(1, { message: "must not be empty" })),
  must_reset_password: Schema.Boolean
})
export type User = typeof User.Type

/** A stored API key: its hash and the ends of its plaintext. `workspace_id` is null if the key has no workspace. */
export const StoredKey = Schema.Struct({
  id: inAnyCase(ApiKeyId),
  workspace_id: Schema.NullOr(inAnyCase(WorkspaceId)),
  created_by: inAnyCase(UserId),
  name: ShortText,
  key_hash: KeyHash,
  key_start: KeyEnd,
  key_end: KeyEnd,
  created_at: Time,
  revoked_at: Schema.NullOr(Time),
  expires_at: Schema.NullOr(Time)
})
export type StoredKey = typeof StoredKey.Type

export const Folder = Schema.Struct({ id: inAnyCase(FolderId), name: ShortText })
export type Folder = typeof Folder.Type

/** A tag of a workspace. No two tags of a workspace have the same name. */
export const WorkspaceTag = Schema.Struct({ id: inAnyCase(TagId), name: ShortText, color: Tag.fields.color })
export type WorkspaceTag = typeof WorkspaceTag.Type

/** A text that several prompts can include. */
export const Fragment = Schema.Struct({ id: inAnyCase(Uuid), name: ShortText, content: Content })
export type Fragment = typeof Fragment.Type

/** A fragment in a prompt: its position, and the values of its slots. */
export const PromptFragment = Schema.Struct({
  id: inAnyCase(Uuid),
  fragment_id: inAnyCase(Uuid),
  position: Prompt.fields.sort_order.annotate({
    description: "Fragments are appended in ascending order of their positions."
  }),
  variable_overrides: FreeForm
})
export type PromptFragment = typeof PromptFragment.Type

/** A version of a prompt. `parent_version_id` is the id of an earlier version of the same prompt, or null. */
export const PromptVersion = Schema.Struct({
  id: inAnyCase(VersionId),
  version_number: VersionNumber,
  content: Content,
  change_summary: Summary,
  change_source: ShortText,
  parent_version_id: Schema.NullOr(inAnyCase(VersionId)),
  metadata: FreeForm,
  created_at: Time
})
export type PromptVersion = typeof PromptVersion.Type

/** A prompt with its fragments, all of its versions, and the ids of its tags. */
export const WorkspacePrompt = Schema.Struct({
  id: inAnyCase(PromptId),
  title: ShortText,
  description: Summary,
  current_content: Content,
  prompt_type: Prompt.fields.prompt_type,
  target_model: ShortText,
  intent: ShortText,
  current_version: Prompt.fields.current_version,
  folder_id: Schema.NullOr(inAnyCase(FolderId)),
  is_favorite: Schema.Boolean,
  is_archived: Schema.Boolean,
  sort_order: Prompt.fields.sort_order,
  created_at: Time,
  updated_at: Time,
  tags: makeList(inAnyCase(TagId), sizes.promptTags),
  fragments: makeList(PromptFragment, sizes.promptFragments),
  versions: Schema.Array(PromptVersion)
})
export type WorkspacePrompt = typeof WorkspacePrompt.Type

/** A workspace with its content, its keys and the users who own them. The fields are in the order of an export. */
export const WholeWorkspace = Schema.Struct({
  workspace: Workspace,
  users: Schema.Array(User),
  api_keys: Schema.Array(StoredKey),
  folders: Schema.Array(Folder),
  tags: Schema.Array(WorkspaceTag),
  fragments: Schema.Array(Fragment),
  prompts: Schema.Array(WorkspacePrompt)
})
export type WholeWorkspace = typeof WholeWorkspace.Type
