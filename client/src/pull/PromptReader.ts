import type { BundledPrompt } from "../Bundle.ts"
import { normalizeBaseUrl, requireApiKey } from "../Options.ts"
import type { Page, PromptType, ResolvedPrompt } from "../Resources.ts"
import { isTooLarge, maxPageSize, toEntries, toPageTarget } from "../Selection.ts"
import { fillSlots, MissingVariablesError } from "../Slots.ts"
import { isResolvedPage } from "../transport/Envelopes.ts"
import { Transport } from "../transport/Transport.ts"
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
    throw new CommandError(`the service returned an invalid prompt ${name}; check --base-url`)
  const fields = { id, name, title, prompt_type, target_model, version, fragment_count, content }
  return sealPrompt({ ...(fields as BundledPrompt), slots: listSlots(content) })
}

/** Maximum number of times that the list is read because it changes or its pages are too large. */
const maxReads = 20

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
  const transport = new Transport({
    apiKey: requireApiKey(apiKey),
    baseUrl: normalizeBaseUrl(baseUrl),
    headers: {},
    fetch,
    logger: {}
  })
  let size = maxPageSize
  for (let reads = 0; reads < maxReads; reads++) {
    try {
      const prompts = new Map<string, BundledPrompt>()
      const totals = new Set<number>()
      let count = 0
      for (let page = 1, total = 1; (page - 1) * size < total; page++) {
        const target = toPageTarget({ filter: { tag, type } }, page, size)
        const response = await transport.send(target, { timeout, maxRetries }, isResolvedPage)
        total = (JSON.parse(response.text) as Pick<Page<unknown>, "meta">).meta.total
        totals.add(total)
        for (const [name, { text, info }] of toEntries(response)) {
          if (text.includes(apiKey))
            throw new CommandError(
              `the prompt ${name} contains the API key, which no file may contain; remove it and revoke the key`
            )
          prompts.set(name, toBundledPrompt(name, JSON.parse(text).data, info.version))
          count++
        }
      }
      // If the list changes between two pages, a prompt occurs twice or the total is different.
      if (prompts.size === count && totals.size === 1)
        return [...prompts.values()].sort((a, b) => (a.name < b.name ? -1 : 1))
    } catch (error) {
      if (!isTooLarge(error) || size === 1) throw error
      size = Math.ceil(size / 2)
    }
  }
  throw new CommandError("the list of prompts changes too often; try again later")
}
