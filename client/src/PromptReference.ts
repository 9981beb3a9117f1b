import type { ResolvedPrompt } from "./ResolvedPrompt.ts"

/**
 * The name of a prompt, and the slots that the caller fills in the prompt's resolved content. `pull` generates a
 * constant of this type for each prompt.
 */
export interface PromptReference<Slots extends string = string> {
  /** Name of the prompt. Prompts of several workspaces can have the same name. */
  readonly name: string
  /** The `prompt_type` of a fallback. */
  readonly type?: string
  /** The `target_model` of a fallback. */
  readonly model?: string
  readonly slots: ReadonlyArray<Slots>
}

/** Returns the name or the id by which a prompt is addressed. */
export const toName = (prompt: string | PromptReference): string => {
  const name = typeof prompt === "string" ? prompt : prompt?.name
  if (typeof name !== "string" || !name) throw new TypeError("prompt must be a name or an id")
  return name
}

declare const slotNames: unique symbol

/** Marks resolved content whose slots are known. The property exists only in the type. */
export interface WithSlots<Slots extends string> {
  readonly [slotNames]: Slots
}

/** The resolved prompt of an id or a reference. The slots of a reference are part of the type. */
export type ResolvedFor<Prompt> = Prompt extends PromptReference
  ? ResolvedPrompt & WithSlots<Prompt["slots"][number]>
  : ResolvedPrompt

/** A value that fills a slot. */
export type SlotValue = string | number | boolean

/** One value for each slot, and no other values. */
type ExactVariables<Slots extends string> = string extends Slots
  ? Readonly<Record<string, SlotValue>>
  : [Slots] extends [never]
    ? Readonly<Record<string, never>>
    : { readonly [Name in Slots]: SlotValue }

/**
 * The variables for `fillSlots`: any variables for a text, or one variable per slot for the result of a typed reference.
 */
export type VariablesFor<Prompt> =
  Prompt extends WithSlots<infer Slots> ? ExactVariables<Slots> : Readonly<Record<string, SlotValue>>
