import * as Schema from "effect/Schema"
import { Timestamp } from "./Timestamp.ts"
import { parseUuid, Uuid } from "./Uuid.ts"

export const WorkspaceId = Uuid.pipe(Schema.brand("WorkspaceId"))
export type WorkspaceId = typeof WorkspaceId.Type

export const PromptId = Uuid.pipe(Schema.brand("PromptId")).annotate({ description: "The prompt's id." })
export type PromptId = typeof PromptId.Type

export const FolderId = Uuid.pipe(Schema.brand("FolderId"))
export type FolderId = typeof FolderId.Type

export const TagId = Uuid.pipe(Schema.brand("TagId")).annotate({ description: "The tag's id." })
export type TagId = typeof TagId.Type

/** The kinds of prompt (SPEC.md section 2.2). */
export const PromptType = Schema.Literals([
  "system",
  "user",
  "assistant",
  "template",
  "few-shot",
  "chain-of-thought"
]).annotate({ description: "What the prompt is for." })
export type PromptType = typeof PromptType.Type

/** A label of a prompt; the colour is `#rrggbb` (SPEC.md section 2.3). */
export const Tag = Schema.Struct({
  id: TagId,
  name: Schema.String.annotate({ description: "What the list filters by." }),
  color: Schema.String.check(
    Schema.isPattern(/^#[0-9a-fA-F]{6}$/u, { message: "must be a colour #rrggbb" })
  ).annotate({ description: "As `#rrggbb`." })
}).annotate({ identifier: "Tag", description: "A label of a prompt." })
export type Tag = typeof Tag.Type

const Title = Schema.String.annotate({ description: "The prompt's name." })
const Description = Schema.String.annotate({ description: "What the prompt does, for people." })
const TargetModel = Schema.String.annotate({ description: "The model that the prompt is written for." })
const Intent = Schema.String.annotate({ description: "What the prompt is meant to achieve." })
const CurrentVersion = Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 2147483647 })).annotate({
  description: "The number of the version that the content is of."
})
const SortOrder = Schema.Int.check(Schema.isBetween({ minimum: -2147483648, maximum: 2147483647 })).annotate({
  description: "Where the editor shows the prompt among others."
})

/** An item of the prompt list: no content, tags or folder (SPEC.md section 2.2). */
export const PromptSummary = Schema.Struct({
  id: PromptId,
  title: Title,
  description: Description,
  prompt_type: PromptType,
  target_model: TargetModel,
  intent: Intent,
  current_version: CurrentVersion,
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({
  identifier: "PromptSummary",
  description: "An item of the prompt list: no content, tags or folder."
})
export type PromptSummary = typeof PromptSummary.Type

/** A whole prompt; `folder_id` is null outside any folder, tags come by name (SPEC.md section 2.3). */
export const Prompt = Schema.Struct({
  id: PromptId,
  title: Title,
  description: Description,
  current_content: Schema.String.annotate({
    description: "The prompt itself; may contain `{{name}}` slots."
  }),
  prompt_type: PromptType,
  target_model: TargetModel,
  intent: Intent,
  current_version: CurrentVersion,
  folder_id: Schema.NullOr(FolderId).annotate({ description: "The folder that the prompt is in, if any." }),
  is_favorite: Schema.Boolean.annotate({ description: "Marked as a favourite in the editor." }),
  is_archived: Schema.Boolean.annotate({ description: "An archived prompt is in no list." }),
  sort_order: SortOrder,
  tags: Schema.Array(Tag).annotate({ description: "By name." }),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Prompt", description: "A whole prompt." })
export type Prompt = typeof Prompt.Type

/** A prompt ready to send to a model, its fragments inlined (SPEC.md section 2.4). */
export const ResolvedPrompt = Schema.Struct({
  id: PromptId,
  title: Title,
  prompt_type: PromptType,
  target_model: TargetModel,
  resolved_content: Schema.String.annotate({
    description:
      "The prompt's content, then each of its fragments with its slots filled, ready to send to a model."
  }),
  fragment_count: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
    description: "How many fragments were appended."
  })
}).annotate({
  identifier: "ResolvedPrompt",
  description: "A prompt ready to send to a model, its fragments inlined."
})
export type ResolvedPrompt = typeof ResolvedPrompt.Type

/** No prompt with that id is in the caller's workspace; another workspace's looks the same (SPEC.md section 4). */
export const PromptNotFound = { _tag: "PromptNotFound" } as const
export type PromptNotFound = typeof PromptNotFound

/** Reads the id of a prompt in any case; `undefined` when it is no UUID. */
export const parsePromptId = (text: string): PromptId | undefined => parseUuid(text) as PromptId | undefined
