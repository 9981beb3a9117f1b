import { makeErrorClass } from "./ErrorClass.ts"
import { PromptClientError } from "./Errors.ts"
import type { VariablesFor } from "./PromptReference.ts"
import type { ResolvedPrompt } from "./ResolvedPrompt.ts"

/** A message to a model. */
export interface Message {
  /** `system` or `assistant` for a prompt of this type, otherwise `user`. */
  readonly role: "system" | "assistant" | "user"
  /** The text, with its slots filled. */
  readonly content: string
}

/** `fillSlots` found slots without a variable. */
export class MissingVariablesError extends makeErrorClass("MissingVariablesError", PromptClientError) {
  /** The names of the slots, without duplicates, in order of first occurrence. */
  readonly missing: ReadonlyArray<string>
  constructor(missing: ReadonlyArray<string>) {
    super(`No value for ${missing.map((name) => `{{${name}}}`).join(", ")}`)
    this.missing = missing
  }
}

/** Matches a slot, `{{name}}`. The name has 1 to 256 UTF-16 code units other than braces; a blank name also matches. */
const slotPattern = /\{\{([^{}]{1,256})\}\}/g

/**
 * Replaces each `{{name}}` slot of a text, or of the `data` of `getResolved`, with the variable of that name. Inserted
 * text is not searched for further slots. Variables without a slot are ignored at run time. If `data` comes from a
 * typed reference, a missing or misspelled variable is a compile-time error.
 *
 * Throws a `MissingVariablesError` that names every slot without a variable.
 *
 * @example
 * ```ts
 * import { fillSlots } from "@prompt-retrieval/client"
 *
 * const text = fillSlots("You are a support agent of {{shop}}.", { shop: "Acme" })
 * ```
 */
export const fillSlots = <Prompt extends string | Pick<ResolvedPrompt, "resolved_content">>(
  prompt: Prompt,
  variables: VariablesFor<Prompt>
): string => {
  const content: unknown = typeof prompt === "string" ? prompt : prompt?.resolved_content
  if (typeof content !== "string") throw new TypeError("prompt must be a text or the data of getResolved")
  const values = new Map<string, unknown>(Object.entries(variables ?? {}))
  const missing = new Set<string>()
  const filled = content.replace(slotPattern, (slot: string, inner: string) => {
    const name = inner.trim()
    if (name === "") return slot
    const value = values.get(name)
    if (["string", "number", "boolean"].includes(typeof value)) return String(value)
    missing.add(name)
    return slot
  })
  if (missing.size) throw new MissingVariablesError([...missing])
  return filled
}

/**
 * Converts the `data` of `getResolved` to a message. The type of the prompt determines the role. `fillSlots` fills the
 * slots of the content.
 *
 * @example
 * ```ts
 * import { PromptClient, toMessage } from "@prompt-retrieval/client"
 *
 * const { data } = await new PromptClient().prompts.getResolved("support-agent")
 * const messages = [toMessage(data, { shop: "Acme" }), { role: "user", content: "Where is my parcel?" }]
 * ```
 */
export const toMessage = <Prompt extends Pick<ResolvedPrompt, "resolved_content" | "prompt_type">>(
  prompt: Prompt,
  variables: VariablesFor<Prompt>
): Message => {
  const { prompt_type } = prompt
  const role = prompt_type === "system" || prompt_type === "assistant" ? prompt_type : "user"
  return { role, content: fillSlots(prompt, variables) }
}
