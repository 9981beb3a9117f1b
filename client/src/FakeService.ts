import type { BundledPrompt } from "./Bundle.ts"
import { PromptNames } from "./PromptNames.ts"
import type { ClientOptions } from "./Options.ts"
import { PromptClient } from "./PromptClient.ts"
import type { Fetch, FetchInit } from "./transport/Fetch.ts"

/**
 * A prompt of a `FakeService`, such as a prompt of a bundle. The `content`, and a name or an id, are required; all
 * other fields are optional. The default title is the name or, without a name, the id.
 */
export type FakePrompt = Partial<BundledPrompt> &
  Pick<BundledPrompt, "content"> &
  (Pick<BundledPrompt, "id"> | Pick<BundledPrompt, "name">)

type StoredPrompt = FakePrompt & Pick<BundledPrompt, "id" | "title" | "etag">

/** The prompts of a `FakeService`, such as a bundle. */
export interface FakeContent {
  /** The prompts, in the order of the list. */
  readonly prompts: ReadonlyArray<FakePrompt>
}

/** How a `FakeService` fails: no connection, or an error response with this status. */
export type FakeFailure = "no connection" | 401 | 402 | 403 | 429 | 500 | 503

const errors = {
  400: ["BAD_REQUEST", "A parameter is invalid"],
  401: ["UNAUTHORIZED", "API key has been revoked"],
  402: ["PAST_DUE", "Subscription is past due or over its limit"],
  403: ["API_NOT_ALLOWED", "API access requires the Solo plan or higher"],
  429: ["RATE_LIMITED", "Rate limit exceeded"],
  500: ["INTERNAL_ERROR", "Internal error"],
  503: ["SERVICE_UNAVAILABLE", "Service unavailable"]
} as const

const epoch = "2026-01-01T00:00:00.000Z"

const serializeFields = (prompt: StoredPrompt): string => JSON.stringify({ ...prompt, etag: undefined })

const toSummary = ({ id, title, prompt_type, target_model, version }: StoredPrompt) => ({
  id,
  title,
  description: "",
  prompt_type: prompt_type ?? "system",
  target_model: target_model ?? "",
  intent: "",
  current_version: version ?? 1,
  created_at: epoch,
  updated_at: epoch
})

const toVersion = (prompt: StoredPrompt) => ({
  id: prompt.id,
  prompt_id: prompt.id,
  version_number: prompt.version ?? 1,
  content: prompt.content,
  change_summary: "",
  change_source: "manual",
  parent_version_id: null,
  metadata: {},
  created_at: epoch
})

/**
 * A prompt service in memory, for the tests of an application. A `PromptClient` calls a `fetch` that responds like the
 * service. If the prompts come from a bundle, only `getResolved` returns the results of the real service. In other
 * results, fields that a bundle does not contain have fixed values, and each prompt has one version. Every prompt
 * matches every tag and folder.
 *
 * @example
 * ```ts
 * import { FakeService } from "@prompt-retrieval/client/testing"
 *
 * const service = new FakeService({ prompts: [{ name: "greeting", content: "Hi {{shop}}" }] })
 * const client = service.connect({ cache: {} })
 * service.failWith(503)
 * service.failWith(undefined)
 * ```
 */
export class FakeService {
  readonly #prompts = new Map<string, StoredPrompt>()
  /** The number of calls of `set`, for the ids and ETags that the fake makes. */
  #changes = 0
  #failure: FakeFailure | undefined
  /** The path and query of each request so far. */
  readonly requests: Array<string> = []

  constructor(content: FakeContent = { prompts: [] }) {
    for (const prompt of content.prompts) this.set(prompt)
  }

  /**
   * Adds a prompt. Replaces the prompt with the same id or, if no id is given, with the same name. The prompt gets a
   * new ETag if no ETag is given. A prompt that replaces a prompt with other fields gets a new ETag even if an ETag is
   * given, because the ETag in a bundle belongs to the fields in the bundle.
   */
  set(prompt: FakePrompt): void {
    const change = ++this.#changes
    const made = `00000000-0000-4000-8000-${String(change).padStart(12, "0")}`
    const id = (prompt.id ?? this.#findId(prompt.name!) ?? made).toLowerCase()
    const stored = { ...prompt, id, title: prompt.title ?? prompt.name ?? id, etag: prompt.etag ?? "" }
    const previous = this.#prompts.get(id)
    const isChanged = previous !== undefined && serializeFields(previous) !== serializeFields(stored)
    const etag = (isChanged ? "" : stored.etag) || `"fake-${change}"`
    this.#prompts.set(id, { ...stored, etag })
  }

  /** Removes the prompt with this id or name. */
  remove(prompt: string): void {
    this.#prompts.delete(this.#findId(prompt) ?? prompt.toLowerCase())
  }

  #findId(name: string): string | undefined {
    return new PromptNames(this.#prompts.values()).findId(name)
  }

  /** Makes all further requests fail. With `undefined`, requests succeed again. */
  failWith(failure: FakeFailure | undefined): void {
    this.#failure = failure
  }

  /**
   * Creates a client of this service. Sets `fetch`. By default, also sets an `apiKey`, and failed requests are not
   * retried.
   */
  connect(options: ClientOptions = {}): PromptClient {
    return new PromptClient({ apiKey: "key_live_test", maxRetries: 0, ...options, fetch: this.fetch })
  }

  /** The function that responds to requests. */
  readonly fetch: Fetch = async (url, { headers }) => {
    const { pathname, search, searchParams } = new URL(url)
    this.requests.push(pathname + search)
    if (this.#failure === "no connection") throw new TypeError("fetch failed")
    if (this.#failure !== undefined) return respondWithError(this.#failure)
    const path = /\/prompts(?:\/([^/]+)(?:\/(resolved|versions)(?:\/(\d+))?)?)?$/.exec(pathname)
    if (path === null) return respond(404, { error: { code: "NOT_FOUND", message: "Route not found" } })
    const [, id, kind, number] = path
    if (id === undefined) {
      const type = searchParams.get("type")
      const listed = [...this.#prompts.values()]
        .map(toSummary)
        .filter(({ prompt_type }) => type === null || type === prompt_type)
      return respondWithPage(listed, searchParams)
    }
    const prompt = this.#prompts.get(decodeURIComponent(id).toLowerCase())
    if (prompt === undefined)
      return respond(404, { error: { code: "NOT_FOUND", message: "Prompt not found" } })
    if (kind === "versions") return respondWithVersions(prompt, number, searchParams)
    return respondWithPrompt(prompt, kind === "resolved", headers)
  }
}

const respond = (status: number, body: unknown, headers: Readonly<Record<string, string>> = {}): Response =>
  new Response(status === 304 ? null : JSON.stringify(body), {
    status,
    headers: { "content-type": "application/json", "x-request-id": crypto.randomUUID(), ...headers }
  })

const respondWithError = (status: keyof typeof errors): Response => {
  const [code, message] = errors[status]
  const headers = status === 429 || status === 503 ? { "retry-after": "1" } : undefined
  return respond(status, { error: { code, message } }, headers)
}

const respondWithPage = (items: ReadonlyArray<unknown>, query: URLSearchParams): Response => {
  const page = Number(query.get("page") ?? 1)
  const per_page = Math.min(Number(query.get("per_page") ?? 20), 100)
  if (!(page >= 1 && per_page >= 1)) return respondWithError(400)
  const data = items.slice((page - 1) * per_page, page * per_page)
  return respond(200, { data, meta: { page, per_page, total: items.length } })
}

const respondWithVersions = (
  prompt: StoredPrompt,
  number: string | undefined,
  query: URLSearchParams
): Response => {
  const version = toVersion(prompt)
  const { version_number, change_summary, change_source, created_at } = version
  if (number === undefined)
    return respondWithPage([{ version_number, change_summary, change_source, created_at }], query)
  return Number(number) === version_number
    ? respond(200, { data: version })
    : respond(404, { error: { code: "NOT_FOUND", message: "Version not found" } })
}

const respondWithPrompt = (
  prompt: StoredPrompt,
  isResolved: boolean,
  requestHeaders: FetchInit["headers"]
): Response => {
  const summary = toSummary(prompt)
  const { id, title, prompt_type, target_model, current_version } = summary
  const resolved = {
    id,
    title,
    prompt_type,
    target_model,
    resolved_content: prompt.content,
    fragment_count: prompt.fragment_count ?? 0
  }
  const full = {
    ...summary,
    current_content: prompt.content,
    folder_id: null,
    is_favorite: false,
    is_archived: false,
    sort_order: 0,
    tags: []
  }
  // The ETag in a bundle is the ETag of the resolved prompt.
  const etag = isResolved ? prompt.etag : prompt.etag.replace(/"$/, '-prompt"')
  const status = requestHeaders["if-none-match"] === etag ? 304 : 200
  const headers = { etag, "prompt-version": String(current_version) }
  return respond(status, { data: isResolved ? resolved : full }, headers)
}
