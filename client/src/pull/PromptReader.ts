import type { BundledPrompt } from "../Bundle.ts"
import { NotFoundError, PromptClientError } from "../Errors.ts"
import { isId, PromptNames, type TitledPrompt } from "../PromptNames.ts"
import { PromptClient } from "../PromptClient.ts"
import type { ListParams, PromptSummary, PromptType, ResolvedPrompt } from "../Resources.ts"
import { fillSlots, MissingVariablesError } from "../Slots.ts"
import type { Fetch } from "../transport/Fetch.ts"
import { sealPrompt } from "./BundleFile.ts"
import { CommandError } from "./CommandError.ts"
import type { Progress } from "./Progress.ts"

/** The prompts to read, and the service to read them from. */
export interface Selection {
  readonly apiKey: string
  readonly baseUrl: string
  readonly tag: string | undefined
  readonly type: PromptType | undefined
}

/** Maximum number of prompts that are read at the same time. */
const concurrency = 4

/** The time limit of one attempt, in milliseconds. */
const attemptTimeoutMs = 30_000
/** The time limit of a call, including its retries and the waits for the rate limit, in milliseconds. */
const callTimeoutMs = 900_000
const maxRetries = 8

/** Maximum number of reads of a list or a prompt that changes during the read. */
const maxReads = 10

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

/** Reads the selected prompts of a workspace, at the rate that the service allows. */
class PromptReader {
  readonly #client: PromptClient
  readonly #selection: Selection
  readonly #progress: Progress
  /** Aborted by the first failure, so that no other call delays the exit of the program. */
  readonly #controller = new AbortController()

  constructor(selection: Selection, progress: Progress) {
    this.#selection = selection
    this.#progress = progress
    const { apiKey, baseUrl } = selection
    const options = { apiKey, baseUrl, timeout: callTimeoutMs, maxRetries }
    this.#client = new PromptClient({ ...options, fetch: this.#fetch })
  }

  /**
   * Sends one attempt and reads the body of its response. The attempt is aborted at its time limit or together with its
   * call.
   */
  readonly #fetch: Fetch = async (url, init) => {
    // `AbortSignal.any` would need Node 20.3.
    const controller = new AbortController()
    const onAbort = () => controller.abort(init.signal.reason)
    const onTimeout = () => controller.abort(new Error(`no complete response within ${attemptTimeoutMs} ms`))
    init.signal.addEventListener("abort", onAbort)
    const timer = setTimeout(onTimeout, attemptTimeoutMs)
    try {
      const response = await fetch(url, { ...init, signal: controller.signal })
      const { status, headers } = response
      if (status === 429) this.#progress.wait(headers.get("retry-after"))
      const text = await response.text()
      return { status, headers, body: null, text: async () => text }
    } finally {
      clearTimeout(timer)
      init.signal.removeEventListener("abort", onAbort)
    }
  }

  abort(): void {
    this.#controller.abort()
  }

  /**
   * Lists prompts. A list of several pages may change between pages, so such a list is read until two reads in a row
   * return the same prompts.
   */
  async list(filter: ListParams): Promise<ReadonlyArray<PromptSummary>> {
    let previous: string | undefined
    for (let reads = 0; reads < maxReads; reads++) {
      const list = this.#client.prompts.list({ ...filter, per_page: 100 })
      const { data, meta } = await list
      if (meta.total <= data.length) return data
      const summaries: Array<PromptSummary> = []
      for await (const summary of list) summaries.push(summary)
      const titles = JSON.stringify(summaries.map(({ id, title }) => [id, title]).sort())
      if (titles === previous) return summaries
      previous = titles
    }
    throw new CommandError("The list of prompts changes too often; try again later")
  }

  /** Reads one prompt. Resolves to `undefined` if the prompt was deleted meanwhile. */
  async read(summary: PromptSummary, names: PromptNames): Promise<BundledPrompt | undefined> {
    try {
      return await this.#read(summary, names)
    } catch (error) {
      if (error instanceof NotFoundError) return undefined
      if (error instanceof PromptClientError) {
        throw new CommandError(`Cannot read prompt ${summary.id}: ${error.message}`)
      }
      throw error
    }
  }

  async #read(summary: PromptSummary, names: PromptNames): Promise<BundledPrompt> {
    const { id } = summary
    const { signal } = this.#controller
    if (!isId(id))
      throw new CommandError("The service returned a prompt id that is not a UUID; check --base-url")
    let state: Pick<PromptSummary, "current_version" | "updated_at"> = summary
    for (let reads = 0; reads < maxReads; reads++) {
      const { data, etag, version: confirmed } = await this.#client.prompts.getResolved(id, { signal })
      this.#check(id, data)
      if (etag === undefined) {
        throw new CommandError(`The response for prompt ${id} has no ETag; a proxy must not remove it`)
      }
      let version = confirmed
      if (version === undefined) {
        // A service with another store may not send the version. If the prompt had the same version before and after
        // the read, the content belongs to this version.
        const { data: later } = await this.#client.prompts.get(id, { signal })
        if (state.current_version === later.current_version && state.updated_at === later.updated_at) {
          version = later.current_version
        }
        state = later
      }
      if (version === undefined) continue
      const { title, prompt_type, target_model, resolved_content: content, fragment_count } = data
      return sealPrompt({
        id,
        name: names.getName(data),
        title,
        prompt_type,
        target_model,
        content,
        fragment_count,
        version,
        // A proxy that compresses responses may make their ETags weak.
        etag: etag.replace(/^W\//, ""),
        slots: listSlots(content)
      })
    }
    throw new CommandError(`Prompt ${id} changes too often; try again later`)
  }

  /** Throws if a response is not the prompt, or contains the API key. */
  #check(id: string, data: ResolvedPrompt): void {
    const texts = [data.title, data.target_model, data.resolved_content]
    const isPrompt =
      data.id === id &&
      Number.isSafeInteger(data.fragment_count) &&
      [...texts, data.prompt_type].every((text) => typeof text === "string")
    if (!isPrompt) throw new CommandError(`The response is not prompt ${id}; check --base-url`)
    if (texts.some((text) => text.includes(this.#selection.apiKey))) {
      throw new CommandError(
        `Prompt ${id} contains the API key, which no file may contain; remove it from the prompt and revoke the key`
      )
    }
  }
}

/** Reads the selected prompts, ordered by id. Rejects with a `CommandError` or a `PromptClientError`. */
export const readPrompts = async (
  selection: Selection,
  progress: Progress
): Promise<ReadonlyArray<BundledPrompt>> => {
  const { tag, type } = selection
  const reader = new PromptReader(selection, progress)
  progress.list()
  const summaries = await reader.list({ tag, type })
  // A name is unique among all prompts of the workspace, not only among the selected prompts.
  const titles: ReadonlyArray<TitledPrompt> =
    tag === undefined && type === undefined ? summaries : await reader.list({})
  const names = new PromptNames(titles)
  progress.start(summaries.length)
  const prompts: Array<BundledPrompt> = []
  const queue = summaries.values()
  const work = async () => {
    for (const summary of queue) {
      const prompt = await reader.read(summary, names)
      if (prompt !== undefined) prompts.push(prompt)
      progress.advance()
    }
  }
  await Promise.all(Array.from({ length: concurrency }, work)).finally(() => reader.abort())
  return prompts.sort((a, b) => (a.id < b.id ? -1 : 1))
}
