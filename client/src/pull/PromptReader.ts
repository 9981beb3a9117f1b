import type { BundledPrompt } from "../Bundle.ts"
import { PromptClient } from "../PromptClient.ts"
import type { PromptType, ResolvedPrompt } from "../Resources.ts"
import { fillSlots, MissingVariablesError } from "../Slots.ts"
import { sealPrompt } from "./BundleFile.ts"
import { CommandError } from "./CommandError.ts"

/** The prompts to read, and the service to read them from. */
export interface PullSource {
  readonly apiKey: string
  readonly baseUrl: string
  readonly tag: string | undefined
  readonly type: PromptType | undefined
}

/** The time limit of a request with its retries, in milliseconds. It is longer than the wait after a 429. */
const timeout = 70_000
const maxRetries = 8

/** Returns the names of the slots of a text, without duplicates, in order of first occurrence. */
export const listSlots = (content: string): ReadonlyArray<string> => {
  try {
    fillSlots(content, {})
    return []
  } catch (error) {
    if (error instanceof MissingVariablesError) return error.missing
    throw error
  }
}

const toBundledPrompt = (name: string, data: ResolvedPrompt, version: number | undefined): BundledPrompt => {
  const { id, title, prompt_type, target_model, resolved_content: content, fragment_count } = data
  const texts = [id, title, prompt_type, target_model, content]
  const isPrompt = texts.every((text) => typeof text === "string") && Number.isSafeInteger(fragment_count)
  // The name becomes a part of a program.
  if (!isPrompt || !/^[a-z0-9_-]+$/.test(name))
    throw new CommandError(`The service returned an invalid prompt ${name}; check --base-url`)
  const fields = { id, name, title, prompt_type, target_model, version, fragment_count, content }
  return sealPrompt({ ...fields, slots: listSlots(content) })
}

/**
 * Reads the prompts of the API key's workspace, ordered by name. Rejects with a `CommandError` or a
 * `PromptClientError`, and with a `TypeError` if the key or the URL is invalid.
 */
export const readPrompts = async ({
  apiKey,
  baseUrl,
  tag,
  type
}: PullSource): Promise<ReadonlyArray<BundledPrompt>> => {
  const client = new PromptClient({ apiKey, baseUrl })
  const entries = await client.readSelection({ filter: { tag, type } }, { timeout, maxRetries })
  const prompts = [...entries].map(([name, { text, info }]) => {
    if (text.includes(apiKey))
      throw new CommandError(
        `The prompt ${name} contains the API key, which no file may contain; remove it from the prompt and revoke the key`
      )
    return toBundledPrompt(name, JSON.parse(text).data, info.version)
  })
  return prompts.sort((a, b) => (a.name < b.name ? -1 : 1))
}
