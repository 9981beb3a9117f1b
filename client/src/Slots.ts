import { PromptClientError } from "./Errors.ts"

/** Slots that no variable was given for. */
export class MissingVariablesError extends PromptClientError {
  override get name(): "MissingVariablesError" {
    return "MissingVariablesError"
  }
  /** Their names, each once, in the order they first occur. */
  readonly missing: ReadonlyArray<string>
  constructor(missing: ReadonlyArray<string>) {
    super(`No value for ${missing.map((name) => `{{${name}}}`).join(", ")}`)
    this.missing = missing
  }
}

/** The service's own grammar: 1 to 256 code units other than braces, not all blank (DESIGN.md section 5). */
const slot = /\{\{([^{}]{1,256})\}\}/g

/**
 * Fills the slots that are the caller's: each `{{name}}` of `content` by the variable of that name. Strings go in as they
 * are and are not read again, numbers and booleans as text. Variables that no slot names are passed over.
 *
 * Throws a `MissingVariablesError` that names every slot without a variable.
 *
 * @example
 * ```ts
 * import { fillSlots } from "prompt-retrieval/client"
 *
 * const text = fillSlots("You are a support agent of {{shop}}.", { shop: "Acme" })
 * ```
 */
export const fillSlots = (
  content: string,
  variables: Readonly<Record<string, string | number | boolean>>
): string => {
  const missing = new Set<string>()
  const filled = content.replace(slot, (whole: string, inner: string) => {
    const name = inner.trim()
    if (name === "") return whole
    const value: unknown = Object.hasOwn(variables, name) ? variables[name] : undefined
    if (/^(string|number|boolean)$/.test(typeof value)) return String(value)
    missing.add(name)
    return whole
  })
  if (missing.size > 0) throw new MissingVariablesError([...missing])
  return filled
}
