import type { PromptSummary, PromptType } from "./Resources.ts"

/** A prompt with its fragments appended. Fill the remaining slots with `fillSlots`, then send the text to a model. */
export interface ResolvedPrompt extends Pick<PromptSummary, "id" | "title" | "target_model"> {
  /** Type of the prompt. For a fallback, the `type` of the call's `PromptReference`, if any. */
  readonly prompt_type: PromptType | undefined
  /** Content of the prompt, followed by its fragments with their slots filled. */
  readonly resolved_content: string
  readonly fragment_count: number
}

/** The properties of a bundled prompt or a fallback that `toResolvedPrompt` reads. */
interface SubstituteFields extends Omit<ResolvedPrompt, "prompt_type" | "resolved_content"> {
  readonly prompt_type: string
  readonly content: string
  readonly version: number
}

export type Substitute = { readonly [Field in keyof SubstituteFields]?: SubstituteFields[Field] | undefined }

/**
 * Converts a bundled prompt or a fallback to a resolved prompt. An absent text becomes an empty text, an absent count
 * becomes 0, and an absent type remains undefined.
 */
export const toResolvedPrompt = ({
  id = "",
  title = "",
  prompt_type,
  target_model = "",
  content = "",
  fragment_count = 0
}: Substitute): ResolvedPrompt => ({
  id,
  title,
  prompt_type: prompt_type as PromptType | undefined,
  target_model,
  resolved_content: content,
  fragment_count
})
