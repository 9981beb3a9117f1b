import * as Schema from "effect/Schema"
import { ApiKeyId, KeyHash, UserId } from "./ApiKey.ts"
import { BillingStatus, Tier } from "./Billing.ts"
import { FolderId } from "./FolderId.ts"
import { isExactNumber, isStorableNumber } from "./Json.ts"
import { Prompt, PromptId, Tag, TagId } from "./Prompt.ts"
import { Timestamp } from "./Timestamp.ts"
import { Uuid } from "./Uuid.ts"
import { VersionId, VersionNumber } from "./Version.ts"
import { WorkspaceId } from "./WorkspaceId.ts"

// The content of a workspace, as operators import, revise and export it. Readers see it as `Prompt` and `Version`.

/** The largest single text of a workspace, in bytes of UTF-8. */
export const maxTextBytes = 16 * 1024 * 1024

/** The deepest nesting of free-form JSON. */
const maxDepth = 100

const findTextProblem = (text: string): string | undefined => {
  if (text.includes("\0")) return "must not contain the NUL character"
  if (!text.isWellFormed()) return "must be well-formed Unicode"
  if (text.length * 3 > maxTextBytes && Buffer.byteLength(text) > maxTextBytes)
    return `must be at most ${maxTextBytes} bytes of UTF-8`
  return undefined
}

const numberProblem = "must hold numbers that JSON can write"

const findJsonProblem = (value: unknown, depth = 0): string | undefined => {
  if (typeof value === "string") return findTextProblem(value)
  if (typeof value === "number") return Number.isFinite(value) ? undefined : numberProblem
  if (typeof value !== "object" || value === null) return undefined
  if (isExactNumber(value)) return isStorableNumber(value.rawJSON) ? undefined : numberProblem
  if (depth === maxDepth) return `must nest at most ${maxDepth} levels deep`
  for (const [key, member] of Object.entries(value)) {
    const problem = findTextProblem(key) ?? findJsonProblem(member, depth + 1)
    if (problem !== undefined) return problem
  }
  return undefined
}

/** Text that PostgreSQL can store: well-formed Unicode without NUL, at most `maxTextBytes`. */
export const Text = Schema.String.check(Schema.makeFilter(findTextProblem))

/** The longest name of anything in a workspace, and the longest email, in characters. PostgreSQL's columns have this limit. */
export const maxNameLength = 256

/** Returns true if a text has at most `maxNameLength` characters. PostgreSQL counts code points, not UTF-16 code units. */
export const fitsName = (text: string): boolean =>
  text.length <= maxNameLength || (text.length <= 2 * maxNameLength && [...text].length <= maxNameLength)

/** A name: 1 to `maxNameLength` characters of text. */
export const Name = Text.check(
  Schema.isMinLength(1, { message: "must not be empty" }),
  Schema.isMaxCodePoints(maxNameLength, { message: `must be at most ${maxNameLength} characters` })
)

/** A JSON object with any members. A number may be an `ExactNumber`. */
export const FreeForm = Schema.Record(Schema.String, Schema.Unknown).check(
  Schema.makeFilter((map: object) => findJsonProblem(map))
)

/** The four digits at either end of a key. */
const KeyEnd = Schema.String.check(
  Schema.isPattern(/^[0-9a-f]{4}$/u, { message: "must be 4 lowercase hexadecimal digits" })
)

/** A workspace without its content. */
export const Workspace = Schema.Struct({
  id: WorkspaceId,
  name: Name,
  tier: Tier,
  billing_status: BillingStatus
})
export type Workspace = typeof Workspace.Type

/** An owner of API keys. Emails are compared without case. */
export const User = Schema.Struct({ id: UserId, email: Name, must_reset_password: Schema.Boolean })
export type User = typeof User.Type

/**
 * An API key as it is stored: its hash and its ends, never its plaintext. `workspace_id` is null for a key without
 * a workspace.
 */
export const StoredKey = Schema.Struct({
  id: ApiKeyId,
  workspace_id: Schema.NullOr(WorkspaceId),
  created_by: UserId,
  name: Text,
  key_hash: KeyHash,
  key_start: KeyEnd,
  key_end: KeyEnd,
  created_at: Timestamp,
  revoked_at: Schema.NullOr(Timestamp),
  expires_at: Schema.NullOr(Timestamp)
})
export type StoredKey = typeof StoredKey.Type

export const Folder = Schema.Struct({ id: FolderId, name: Name })
export type Folder = typeof Folder.Type

/** A tag of a workspace. Each name occurs once. */
export const WorkspaceTag = Schema.Struct({ id: TagId, name: Name, color: Tag.fields.color })
export type WorkspaceTag = typeof WorkspaceTag.Type

/** A text that prompts share. */
export const Fragment = Schema.Struct({ id: Uuid, name: Name, content: Text })
export type Fragment = typeof Fragment.Type

/** A fragment's place in a prompt, with the values of its slots. */
export const PromptFragment = Schema.Struct({
  id: Uuid,
  fragment_id: Uuid,
  position: Prompt.fields.sort_order.annotate({
    description: "Fragments are appended in ascending order of their positions."
  }),
  variable_overrides: FreeForm
})
export type PromptFragment = typeof PromptFragment.Type

/** A version of a prompt. `parent_version_id` is an earlier version of the same prompt, or null. */
export const PromptVersion = Schema.Struct({
  id: VersionId,
  version_number: VersionNumber,
  content: Text,
  change_summary: Text,
  change_source: Text,
  parent_version_id: Schema.NullOr(VersionId),
  metadata: FreeForm,
  created_at: Timestamp
})
export type PromptVersion = typeof PromptVersion.Type

/** A prompt with the ids of its tags, its fragments and all of its versions. */
export const WorkspacePrompt = Schema.Struct({
  id: PromptId,
  title: Text,
  description: Text,
  current_content: Text,
  prompt_type: Prompt.fields.prompt_type,
  target_model: Text,
  intent: Text,
  current_version: Prompt.fields.current_version,
  folder_id: Schema.NullOr(FolderId),
  is_favorite: Schema.Boolean,
  is_archived: Schema.Boolean,
  sort_order: Prompt.fields.sort_order,
  created_at: Timestamp,
  updated_at: Timestamp,
  tags: Schema.Array(TagId),
  fragments: Schema.Array(PromptFragment),
  versions: Schema.Array(PromptVersion)
})
export type WorkspacePrompt = typeof WorkspacePrompt.Type
