import type { BundledPrompt } from "./Bundle.ts"
import { TimeoutError } from "./Errors.ts"
import type { ClientOptions } from "./Options.ts"
import { PromptClient } from "./PromptClient.ts"
import { toResolvedPrompt } from "./ResolvedPrompt.ts"
import type { Fetch } from "./transport/Fetch.ts"
import { withLimits } from "./transport/Limits.ts"

/**
 * A prompt of a `FakeService`, such as a prompt of a bundle. The field `content` and either `name` or `id` are
 * required. All other fields are optional. The default title is the name or, without a name, the id.
 */
export type FakePrompt = Partial<BundledPrompt> &
  Pick<BundledPrompt, "content"> &
  (Pick<BundledPrompt, "id"> | Pick<BundledPrompt, "name">)

type StoredPrompt = FakePrompt &
  Required<Pick<BundledPrompt, "id" | "title" | "prompt_type" | "target_model" | "version">>

/** The prompts of a `FakeService`, such as a bundle. */
export interface FakeContent {
  /** The prompts, in the order of the list. */
  readonly prompts: ReadonlyArray<FakePrompt>
}

/** How each request to a `FakeService` fails: without a connection, or with an error response of the given status. */
export type FakeFailure = "no connection" | 401 | 402 | 403 | 429 | 500 | 503

const errors = {
  400: ["BAD_REQUEST", "A parameter is invalid"],
  401: ["UNAUTHORIZED", "API key has been revoked"],
  402: ["PAST_DUE", "Subscription is past due or over its limit"],
  403: ["API_NOT_ALLOWED", "API access requires the Solo plan or higher"],
  404: ["NOT_FOUND", "Prompt not found"],
  429: ["RATE_LIMITED", "Rate limit exceeded"],
  500: ["INTERNAL_ERROR", "Internal error"],
  503: ["SERVICE_UNAVAILABLE", "Service unavailable"]
} as const

const epoch = "2026-01-01T00:00:00.000Z"

const toSummary = ({ id, title, prompt_type, target_model, version }: StoredPrompt) => ({
  id,
  title,
  description: "",
  prompt_type,
  target_model,
  intent: "",
  current_version: version,
  created_at: epoch,
  updated_at: epoch
})

const toVersionSummary = ({ version }: StoredPrompt) => ({
  version_number: version,
  change_summary: "",
  change_source: "manual",
  created_at: epoch
})

const toVersion = (prompt: StoredPrompt) => ({
  id: prompt.id,
  prompt_id: prompt.id,
  content: prompt.content,
  ...toVersionSummary(prompt),
  parent_version_id: null,
  metadata: {}
})

const toPrompt = (prompt: StoredPrompt) => ({
  ...toSummary(prompt),
  current_content: prompt.content,
  folder_id: null,
  is_favorite: false,
  is_archived: false,
  sort_order: 0,
  tags: []
})

/**
 * A prompt service in memory, for the tests of an application. The clients that `connect` returns use a `fetch` that
 * responds like the service. If the prompts come from a bundle, only `getResolved`, `prefetch` and `live` return the
 * results of the real service. In the results of other calls, fields that a bundle does not contain have fixed values.
 * Each prompt has one version. Every prompt matches every tag and folder. The prompts have the given names, whatever
 * their titles are.
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
  #madeIds = 0
  /** Distinguishes the ETags of this service from the ETags of other services in the same test. */
  readonly #etagPrefix = crypto.randomUUID()
  /** The ETag of each body that was returned so far. */
  readonly #etags = new Map<string, string>()
  #failure: FakeFailure | undefined
  /** The functions that wake waiting requests. */
  readonly #waiting = new Set<() => void>()
  /** The path and query of each request that was received so far. */
  readonly requests: Array<string> = []

  constructor(content: FakeContent = { prompts: [] }) {
    for (const prompt of content.prompts) this.set(prompt)
  }

  /** Adds a prompt. Replaces the prompt with the same id or, if no id is given, with the same name. */
  set(prompt: FakePrompt): void {
    const makeId = () => `00000000-0000-4000-8000-${String(++this.#madeIds).padStart(12, "0")}`
    const id = (prompt.id ?? this.#find(prompt.name!)?.id ?? makeId()).toLowerCase()
    const { title = prompt.name ?? id, prompt_type = "system", target_model = "", version = 1 } = prompt
    this.#prompts.set(id, { ...prompt, id, title, prompt_type, target_model, version })
    this.#wake()
  }

  /** Removes the prompt with this id or name. */
  remove(prompt: string): void {
    this.#prompts.delete(this.#find(prompt)?.id ?? "")
    this.#wake()
  }

  /** Finds a prompt by its id or its name. If several prompts have this name, finds the first added prompt. */
  #find(prompt: string): StoredPrompt | undefined {
    return (
      this.#prompts.get(prompt.toLowerCase()) ??
      [...this.#prompts.values()].find(({ name }) => name === prompt)
    )
  }

  /** Makes all further requests fail. If `failure` is `undefined`, requests succeed again. */
  failWith(failure: FakeFailure | undefined): void {
    this.#failure = failure
    this.#wake()
  }

  #wake(): void {
    for (const wake of this.#waiting) wake()
    this.#waiting.clear()
  }

  /** Creates a client of this service. By default, the client has an `apiKey`, and does not retry failed requests. */
  connect(options: ClientOptions = {}): PromptClient {
    return new PromptClient({ apiKey: "key_live_test", maxRetries: 0, ...options, fetch: this.fetch })
  }

  /** Responds to a request. If the response is a 304 and the request asks the service to wait, waits for a change. */
  readonly fetch: Fetch = async (url, { headers, signal }) => {
    const { pathname, search, searchParams } = new URL(url)
    this.requests.push(pathname + search)
    const respond = () => this.#toResponse(this.#reply(pathname, searchParams), headers["if-none-match"])
    const wait = Math.min(Number(/\bwait=(\d+)/.exec(headers.prefer ?? "")?.[1]), 50)
    if (!wait) return respond()
    const waitForChange = async () => {
      for (;;) {
        const response = respond()
        if (response.status !== 304) return response
        await new Promise<void>((resolve) => this.#waiting.add(resolve))
      }
    }
    return withLimits({ timeout: wait * 1_000, signal }, waitForChange).catch((error) => {
      if (signal.aborted) throw signal.reason
      if (!(error instanceof TimeoutError)) throw error
      const response = respond()
      response.headers.set("preference-applied", `wait=${wait}`)
      return response
    })
  }

  /** Makes a response. A successful response has an ETag, and is a 304 if the request has this ETag. */
  #toResponse({ status, body, headers }: Reply, ifNoneMatch?: string): Response {
    const text = JSON.stringify(body)
    const fixed = { "content-type": "application/json", "x-request-id": crypto.randomUUID(), ...headers }
    if (status) return new Response(text, { status, headers: fixed })
    const etag = this.#etags.get(text) ?? `"${this.#etagPrefix}-${this.#etags.size}"`
    this.#etags.set(text, etag)
    const isCurrent = etag === ifNoneMatch
    return new Response(isCurrent ? null : text, {
      status: isCurrent ? 304 : 200,
      headers: { ...fixed, etag }
    })
  }

  #reply(path: string, query: URLSearchParams): Reply {
    if (this.#failure === "no connection") throw new TypeError("fetch failed")
    if (this.#failure !== undefined) return toError(this.#failure)
    if (/\/v1\/resolved$/.test(path)) return this.#replyResolved(query)
    const match = /\/prompts(?:\/([^/]+)(?:\/(resolved|versions)(?:\/(\d+))?)?)?$/.exec(path)
    if (match === null) return toError(404, "Route not found")
    const [, id, kind, number] = match
    if (id === undefined) return toPage(this.#list(query), toSummary, query)
    const prompt = this.#find(id)
    const notFound = toError(404, number && "Version not found")
    if (prompt === undefined) return notFound
    if (kind === "versions") {
      if (!number) return toPage([prompt], toVersionSummary, query)
      return Number(number) === prompt.version ? { body: { data: toVersion(prompt) } } : notFound
    }
    const data = kind === "resolved" ? toResolvedPrompt(prompt) : toPrompt(prompt)
    return { body: { data }, headers: { "prompt-version": String(prompt.version) } }
  }

  /** Returns the resolved prompts that the query names. If the query names no prompt, returns a page of the list. */
  #replyResolved(query: URLSearchParams): Reply {
    const named = query.getAll("prompt").flatMap((name) => {
      const prompt = this.#find(name)
      return prompt ? [{ ...prompt, name }] : []
    })
    const isNamed = query.has("prompt")
    if (isNamed) query.set("per_page", "100")
    return toPage(isNamed ? named : this.#list(query), toResolvedPrompt, query, (listed) =>
      query.has("names") ? { prompts: listed.map(({ id, name = id, version }) => ({ name, version })) } : {}
    )
  }

  /** Lists the prompts that match the filters of a query. */
  #list(query: URLSearchParams): ReadonlyArray<StoredPrompt> {
    const type = query.get("type")
    return [...this.#prompts.values()].filter((prompt) => [null, prompt.prompt_type].includes(type))
  }
}

/** A response without the headers that every response has. */
interface Reply {
  /** Default: 200. */
  readonly status?: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>>
}

const toError = (status: keyof typeof errors, message: string = errors[status][1]): Reply => ({
  status,
  body: { error: { code: errors[status][0], message } },
  headers: status === 429 || status === 503 ? { "retry-after": "1" } : {}
})

const toPage = <A>(
  items: ReadonlyArray<A>,
  toData: (item: A) => unknown,
  query: URLSearchParams,
  toMeta: (items: ReadonlyArray<A>) => object = () => ({})
): Reply => {
  const page = Number(query.get("page") ?? 1)
  const per_page = Math.min(Number(query.get("per_page") ?? 20), 100)
  if (!(page >= 1 && per_page >= 1)) return toError(400)
  const listed = items.slice((page - 1) * per_page, page * per_page)
  return {
    body: { data: listed.map(toData), meta: { page, per_page, total: items.length, ...toMeta(listed) } }
  }
}
