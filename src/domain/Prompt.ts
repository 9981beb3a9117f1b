import * as Schema from "effect/Schema"
import { Timestamp } from "./Timestamp.ts"
import { parseUuid, Uuid } from "./Uuid.ts"

export const WorkspaceId = Uuid.pipe(Schema.brand("WorkspaceId"))
export type WorkspaceId = typeof WorkspaceId.Type

export const PromptId = Uuid.pipe(Schema.brand("PromptId"))
export type PromptId = typeof PromptId.Type

export const FolderId = Uuid.pipe(Schema.brand("FolderId"))
export type FolderId = typeof FolderId.Type

export const TagId = Uuid.pipe(Schema.brand("TagId"))
export type TagId = typeof TagId.Type

/** The kinds of prompt (SPEC.md section 2.2). */
export const PromptType = Schema.Literals([
  "system",
  "user",
  "assistant",
  "template",
  "few-shot",
  "chain-of-thought"
])
export type PromptType = typeof PromptType.Type

/** A label of a prompt; the colour is `#rrggbb` (SPEC.md section 2.3). */
export const Tag = Schema.Struct({
  id: TagId,
  name: Schema.String,
  color: Schema.String.check(Schema.isPattern(/^#[0-9a-fA-F]{6}$/, { message: "must be a colour #rrggbb" }))
}).annotate({ identifier: "Tag" })
export type Tag = typeof Tag.Type

const CurrentVersion = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2147483647 }))
const SortOrder = Schema.Int.check(Schema.isBetween({ minimum: -2147483648, maximum: 2147483647 }))

/** An item of the prompt list: no content, tags or folder (SPEC.md section 2.2). */
export const PromptSummary = Schema.Struct({
  id: PromptId,
  title: Schema.String,
  description: Schema.String,
  prompt_type: PromptType,
  target_model: Schema.String,
  intent: Schema.String,
  current_version: CurrentVersion,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "PromptSummary" })
export type PromptSummary = typeof PromptSummary.Type

/** A whole prompt; `folder_id` is null outside any folder, tags come by name (SPEC.md section 2.3). */
export const Prompt = Schema.Struct({
  id: PromptId,
  title: Schema.String,
  description: Schema.String,
  current_content: Schema.String,
  prompt_type: PromptType,
  target_model: Schema.String,
  intent: Schema.String,
  current_version: CurrentVersion,
  folder_id: Schema.NullOr(FolderId),
  is_favorite: Schema.Boolean,
  is_archived: Schema.Boolean,
  sort_order: SortOrder,
  tags: Schema.Array(Tag),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Prompt" })
export type Prompt = typeof Prompt.Type

/** A prompt ready to send to a model, its fragments inlined (SPEC.md section 2.4). */
export const ResolvedPrompt = Schema.Struct({
  id: PromptId,
  title: Schema.String,
  prompt_type: PromptType,
  target_model: Schema.String,
  resolved_content: Schema.String,
  fragment_count: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
}).annotate({ identifier: "ResolvedPrompt" })
export type ResolvedPrompt = typeof ResolvedPrompt.Type

/** No prompt with that id is in the caller's workspace; another workspace's looks the same (SPEC.md section 4). */
export const PromptNotFound = { _tag: "PromptNotFound" } as const
export type PromptNotFound = typeof PromptNotFound

/** Reads the id of a prompt in any case; `undefined` when it is no UUID. */
export const parsePromptId = (text: string): PromptId | undefined => parseUuid(text) as PromptId | undefined
