import type { BundledPrompt } from "../Bundle.ts"
import { NotFoundError, PromptClientError } from "../Errors.ts"
import { PromptClient } from "../PromptClient.ts"
import type { PromptSummary, PromptType } from "../Resources.ts"
import { fillSlots, MissingVariablesError } from "../Slots.ts"
import type { Fetch } from "../Transport.ts"
import { type RenderedPrompt, renderPrompt, sealPrompt } from "./BundleFile.ts"
import { CommandError } from "./CommandError.ts"
import { httpFetch } from "./HttpFetch.ts"
import { collectGarbage } from "./Memory.ts"
import type { Progress } from "./Progress.ts"

/** Which prompts to read, and from where. */
export interface Selection {
  readonly apiKey: string
  readonly baseUrl: string
  readonly tag: string | undefined
  readonly type: PromptType | undefined
}

/** How many prompts are read at the same time. */
const concurrency = 4

/** The time limit of one attempt, in milliseconds. The time limit of a call also covers waits for the rate limit. */
const attemptTimeoutMs = 30_000
const callTimeoutMs = 900_000
const maxRetries = 8

/** After how many prompts garbage is collected. */
const collectionInterval = 100

/** How often a list or a prompt that changes meanwhile is read again. */
const maxReads = 10

/** What is needed of a prompt in the list. */
type ListedPrompt = Pick<PromptSummary, "id" | "current_version" | "updated_at">

/** Response headers of a resolved prompt. */
interface ResponseHeaders {
  readonly etag: string | null
  readonly version: string | null
}

const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/** Returns the names of the slots of a content, without duplicates, in order of first occurrence. */
export const listSlots = (content: string): ReadonlyArray<string> => {
  try {
    fillSlots(content, {})
    return []
  } catch (error) {
    if (error instanceof MissingVariablesError) return error.missing
    throw error
  }
}

/** Reads the selected prompts of a workspace, at the rate that the service allows. */
class PromptReader {
  readonly #client: PromptClient
  readonly #selection: Selection
  readonly #progress: Progress
  /** Aborted by the first failure, so that no other call delays the end of the program. */
  readonly #controller = new AbortController()
  /** The headers of the latest response to each URL, until they are used. */
  readonly #headers = new Map<string, ResponseHeaders>()

  constructor(selection: Selection, progress: Progress) {
    this.#selection = selection
    this.#progress = progress
    const { apiKey, baseUrl } = selection
    this.#client = new PromptClient({
      apiKey,
      baseUrl,
      fetch: this.#fetch,
      timeout: callTimeoutMs,
      maxRetries
    })
  }

  /** Sends one attempt, which ends with its time limit or with its call. */
  readonly #fetch: Fetch = async (url, init) => {
    const controller = new AbortController()
    const onAbort = () => controller.abort(init.signal.reason)
    const onTimeout = () => controller.abort(new Error(`no complete response within ${attemptTimeoutMs} ms`))
    init.signal.addEventListener("abort", onAbort)
    const timer = setTimeout(onTimeout, attemptTimeoutMs)
    try {
      const response = await httpFetch(url, { ...init, signal: controller.signal })
      const { status, headers } = response
      if (status === 429) this.#progress.wait(headers.get("retry-after"))
      if (status === 200 && url.endsWith("/resolved")) {
        this.#headers.set(url, { etag: headers.get("etag"), version: headers.get("prompt-version") })
      }
      return response
    } finally {
      clearTimeout(timer)
      init.signal.removeEventListener("abort", onAbort)
    }
  }

  /** Ends all calls. */
  abort(): void {
    this.#controller.abort()
  }

  /** Lists the selected prompts. A list of several pages is read until two readings agree, because it may change. */
  async list(): Promise<ReadonlyArray<ListedPrompt>> {
    const { tag, type } = this.#selection
    let previous: string | undefined
    for (let reading = 0; reading < maxReads; reading++) {
      const list = this.#client.prompts.list({ tag, type, per_page: 100 })
      const { data, meta } = await list
      if (meta.total <= data.length) return data
      const summaries: Array<ListedPrompt> = []
      for await (const { id, current_version, updated_at } of list) {
        summaries.push({ id, current_version, updated_at })
      }
      const ids = summaries
        .map(({ id }) => id)
        .sort()
        .join()
      if (ids === previous) return summaries
      previous = ids
    }
    throw new CommandError("The list of prompts changes too often; try again later")
  }

  /** Reads one prompt. Resolves to `undefined` if it was deleted meanwhile. */
  async read(summary: ListedPrompt): Promise<BundledPrompt | undefined> {
    try {
      return await this.#read(summary)
    } catch (error) {
      if (error instanceof NotFoundError) return undefined
      if (error instanceof PromptClientError) {
        throw new CommandError(`Cannot read prompt ${summary.id}: ${error.message}`)
      }
      throw error
    }
  }

  async #read(summary: ListedPrompt): Promise<BundledPrompt> {
    const { id } = summary
    if (!uuidPattern.test(id))
      throw new CommandError("The service returned a prompt id that is not a UUID; check --base-url")
    let state: Omit<ListedPrompt, "id"> = summary
    for (let reading = 0; reading < maxReads; reading++) {
      const { data } = await this.#client.prompts.getResolved(id, { signal: this.#controller.signal })
      const { etag, version: header } = this.#takeHeaders(id)
      const { title, prompt_type, target_model, resolved_content: content, fragment_count } = data
      if (
        data.id !== id ||
        !Number.isSafeInteger(fragment_count) ||
        [title, prompt_type, target_model, content].some((text) => typeof text !== "string")
      ) {
        throw new CommandError(`The response is not prompt ${id}; check --base-url`)
      }
      if ([title, target_model, content].some((text) => text.includes(this.#selection.apiKey))) {
        throw new CommandError(
          `Prompt ${id} contains the API key, which no file may contain; remove it from the prompt and revoke the key`
        )
      }
      if (etag === null) {
        throw new CommandError(`The response for prompt ${id} has no ETag; a proxy must not remove it`)
      }
      let version = header !== null && /^\d+$/.test(header) ? Number(header) : undefined
      if (version === undefined) {
        // An older service does not send the version. The content belongs to the version that the prompt had before and after.
        const { data: later } = await this.#client.prompts.get(id, { signal: this.#controller.signal })
        if (state.current_version === later.current_version && state.updated_at === later.updated_at) {
          version = later.current_version
        }
        state = later
      }
      if (version !== undefined) {
        const slots = listSlots(content)
        // A proxy that compresses responses makes their ETags weak.
        return sealPrompt({
          id,
          title,
          prompt_type,
          target_model,
          content,
          fragment_count,
          version,
          etag: etag.replace(/^W\//, ""),
          slots
        })
      }
    }
    throw new CommandError(`Prompt ${id} changes too often; try again later`)
  }

  #takeHeaders(id: string): ResponseHeaders {
    for (const [url, headers] of this.#headers) {
      if (!url.endsWith(`/${id}/resolved`)) continue
      this.#headers.delete(url)
      return headers
    }
    return { etag: null, version: null }
  }
}

/** Reads the selected prompts, ordered by id. Rejects with a `CommandError` or a `PromptClientError`. */
export const readPrompts = async (
  selection: Selection,
  progress: Progress
): Promise<ReadonlyArray<RenderedPrompt>> => {
  const reader = new PromptReader(selection, progress)
  progress.list()
  const summaries = await reader.list()
  progress.start(summaries.length)
  const prompts: Array<RenderedPrompt> = []
  const queue = summaries.values()
  const work = async () => {
    for (const summary of queue) {
      const prompt = await reader.read(summary)
      if (prompt !== undefined) prompts.push(renderPrompt(prompt))
      progress.advance()
      if (prompts.length % collectionInterval === 0) collectGarbage()
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work)).finally(() => reader.abort())
  collectGarbage()
  return prompts.sort((a, b) => (a.id < b.id ? -1 : 1))
}
