import { type BundledPrompt, isResolvedPrompt } from "../Bundle.ts"
import { LivePrompts, type LiveSettings } from "../Live.ts"
import { parseOptions } from "../Options.ts"
import type { PromptFilter } from "../Selection.ts"
import { fillSlots, MissingVariablesError } from "../Slots.ts"
import type { UnknownJson } from "../transport/Envelopes.ts"
import { Transport } from "../transport/Transport.ts"
import { sealPrompt } from "./BundleFile.ts"
import { CommandError, toUsageError } from "./CommandError.ts"
import type { PullOptions } from "./CommandLine.ts"

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

const toBundledPrompt = (name: string, data: UnknownJson, version: number | undefined): BundledPrompt => {
  // The name becomes part of a generated program, so only the characters of valid names are safe.
  if (!isResolvedPrompt(data) || !/^[a-z0-9_-]+$/.test(name))
    throw new CommandError(`the service returned an invalid prompt ${name}; check --base-url`)
  const content = data.resolved_content
  return sealPrompt({ ...data, name, version, content, slots: listSlots(content) })
}

/** Returns the options of the client. Throws a `CommandError` if the key is missing, or if the key or URL is invalid. */
const readOptions = (baseUrl: string | undefined) => {
  if (!process.env.PROMPT_RETRIEVAL_KEY)
    throw toUsageError("the environment variable PROMPT_RETRIEVAL_KEY is required: set it to an API key")
  try {
    // The timeout is longer than the pause after a 429.
    return parseOptions({ baseUrl, timeout: 70_000, maxRetries: 8 })
  } catch (error) {
    throw toUsageError(
      (error as TypeError).message.startsWith("apiKey")
        ? "PROMPT_RETRIEVAL_KEY must be an API key without spaces or line breaks"
        : "--base-url or PROMPT_RETRIEVAL_URL must be an http or https URL without credentials, query or fragment"
    )
  }
}

/** Maximum number of reads of the list if the list keeps changing. */
const maxReads = 20

/** Reads the selected prompts. Returns their texts by name. */
const readTexts = async (filter: PromptFilter, settings: LiveSettings): Promise<LivePrompts["texts"]> => {
  let lastNames: string | undefined
  for (let reads = 0; reads < maxReads; reads++) {
    const prompts = new LivePrompts({ filter }, settings)
    await prompts.load().finally(() => prompts.close())
    const { texts, totals } = prompts
    const [total, ...otherTotals] = totals
    // The list has changed between two pages if the totals differ or a prompt occurs twice.
    if (otherTotals.length > 0) continue
    if (total === texts.size) return texts
    const names = [...texts.keys()].sort().join(" ")
    // If two reads return the same names, the list has not changed, and the service leaves out the missing prompts.
    if (names === lastNames)
      throw new CommandError(
        `the service cannot resolve ${total! - texts.size} of ${total} prompts, because they are too large; ` +
          "shorten the prompts that its log names, or select others with --tag or --type"
      )
    lastNames = names
  }
  throw new CommandError("the list of prompts changes too often; try again later")
}

/** Reads the selected prompts, ordered by name. Rejects with a `CommandError` or a `PromptClientError`. */
export const readPrompts = async ({ baseUrl, tag, type }: PullOptions) => {
  const options = readOptions(baseUrl)
  const transport = new Transport({ ...options, headers: {} })
  const texts = await readTexts({ tag, type }, { ...options, transport })
  return [...texts]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { text, info }]) => {
      if (!text.includes(options.apiKey)) return toBundledPrompt(name, JSON.parse(text).data, info.version)
      throw new CommandError(
        `the prompt ${name} contains the API key, which no file may contain; remove it and revoke the key`
      )
    })
}
