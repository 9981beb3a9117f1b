import * as Schema from "effect/Schema"
import * as Struct from "effect/Struct"
import { maxInt32, minInt32 } from "./Sizes.ts"
import { Timestamp } from "./Timestamp.ts"
import { parseUuid, Uuid } from "./Uuid.ts"

export { parseUuid, Uuid }

export const PromptId = Uuid.pipe(Schema.brand("PromptId")).annotate({ description: "Id of the prompt." })
export type PromptId = typeof PromptId.Type

export const FolderId = Uuid.pipe(Schema.brand("FolderId"))
export type FolderId = typeof FolderId.Type

export const TagId = Uuid.pipe(Schema.brand("TagId")).annotate({ description: "Id of the tag." })
export type TagId = typeof TagId.Type

/** The types of prompts (specification 2.2). */
export const PromptType = Schema.Literals([
  "system",
  "user",
  "assistant",
  "template",
  "few-shot",
  "chain-of-thought"
]).annotate({ description: "Type of the prompt." })
export type PromptType = typeof PromptType.Type

/** A label of a prompt (specification 2.3). */
export const Tag = Schema.Struct({
  id: TagId,
  name: Schema.String.annotate({
    description: "Name of the tag; the list of prompts filters by it.",
    examples: ["production"]
  }),
  color: Schema.String.check(
    Schema.isPattern(/^#[0-9a-fA-F]{6}$/u, { message: "must be a color like #rrggbb" })
  ).annotate({ description: "Color in the form `#rrggbb`.", examples: ["#2e7d32"] })
}).annotate({ identifier: "Tag", description: "A label of a prompt." })
export type Tag = typeof Tag.Type

/** A prompt (specification 2.3). `folder_id` is null if the prompt is in no folder. Tags are ordered by name. */
export const Prompt = Schema.Struct({
  id: PromptId,
  title: Schema.String.annotate({ description: "Title of the prompt.", examples: ["Support agent"] }),
  description: Schema.String.annotate({
    description: "What the prompt does.",
    examples: ["Answers customers of the shop"]
  }),
  current_content: Schema.String.annotate({
    description: "Body of the prompt. May contain `{{name}}` slots.",
    examples: ["You are a support agent of {{shop}}."]
  }),
  prompt_type: PromptType,
  target_model: Schema.String.annotate({
    description: "Model that the prompt is written for.",
    examples: ["gpt-4o"]
  }),
  intent: Schema.String.annotate({ description: "Purpose of the prompt.", examples: ["support"] }),
  current_version: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: maxInt32 })).annotate({
    description: "Version number of `current_content`."
  }),
  folder_id: Schema.NullOr(FolderId).annotate({
    description: "Id of the folder that contains the prompt, or null."
  }),
  is_favorite: Schema.Boolean.annotate({
    description: "True if the prompt is marked as a favorite in the editor."
  }),
  is_archived: Schema.Boolean.annotate({
    description: "True if the prompt is archived. Lists omit archived prompts."
  }),
  sort_order: Schema.Int.check(Schema.isBetween({ minimum: minInt32, maximum: maxInt32 })).annotate({
    description: "Position of the prompt in the editor."
  }),
  tags: Schema.Array(Tag).annotate({ description: "Tags of the prompt, ordered by name." }),
  created_at: Timestamp,
  updated_at: Timestamp
}).annotate({ identifier: "Prompt", description: "A prompt with its content, folder and tags." })
export type Prompt = typeof Prompt.Type

/** An item of the prompt list, without content, tags and folder (specification 2.2). */
export const PromptSummary = Schema.Struct(
  Struct.pick(Prompt.fields, [
    "id",
    "title",
    "description",
    "prompt_type",
    "target_model",
    "intent",
    "current_version",
    "created_at",
    "updated_at"
  ])
).annotate({
  identifier: "PromptSummary",
  description: "An item of the prompt list, without content, tags and folder."
})
export type PromptSummary = typeof PromptSummary.Type

/** The fields of a prompt that its resolved form repeats unchanged. */
const repeatedFields = Struct.pick(Prompt.fields, ["id", "title", "prompt_type", "target_model"])

export const RepeatedFields = Schema.Struct(repeatedFields)
export type RepeatedFields = typeof RepeatedFields.Type

/** The names of the repeated fields. The database columns of these fields have the same names. */
export const repeatedFieldNames = Object.keys(repeatedFields) as ReadonlyArray<keyof RepeatedFields>

export const pickRepeatedFields: (prompt: RepeatedFields) => RepeatedFields = Struct.pick(repeatedFieldNames)

/** A prompt with its fragments appended and their slots filled (specification 2.4). */
export const ResolvedPrompt = Schema.Struct({
  ...repeatedFields,
  resolved_content: Schema.String.annotate({
    description: "Content of the prompt, followed by its fragments with their slots filled.",
    examples: ["You are a support agent of {{shop}}.\n\nAnswer in English."]
  }),
  fragment_count: Schema.Int.check(Schema.isGreaterThanOrEqualTo(0)).annotate({
    description: "Number of fragments appended."
  })
}).annotate({
  identifier: "ResolvedPrompt",
  description: "A prompt with its fragments appended and their slots filled."
})
export type ResolvedPrompt = typeof ResolvedPrompt.Type

/** The caller's workspace has no prompt with the requested id or name (specification 4). */
export const PromptNotFound = { _tag: "PromptNotFound" } as const
export type PromptNotFound = typeof PromptNotFound

/** Parses a UUID as the id of a prompt. Returns `undefined` for any other text. */
export const parsePromptId = (text: string): PromptId | undefined => parseUuid(text) as PromptId | undefined
