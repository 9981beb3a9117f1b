import * as Arbitrary from "effect/Arbitrary"
import { PromptClient, type Source } from "../src/index.ts"
import { testModel } from "./models.ts"
import { makeBundle } from "./pull/bundles.ts"
import { errorResponse, key, oneOf, textResponse } from "./support.ts"

const ttl = 1_000
const maxStale = 4_000
const maxAge = ttl + maxStale
/** The longest pause between requests for a target in an outage. `Math.random` is 0.5, so a random pause takes half. */
const maxPause = 0.9 * ttl

/** What the service sends: the current text, a text of this age in seconds, nothing, or an error with this status. */
type Behavior = "ok" | "aged 2" | "aged 5" | "aged 9" | "down" | 401 | 403 | 404 | 503

const targets = ["a", "b", "c"]
const bundle = makeBundle({ name: "a", content: "Bundled text" })
const step = Arbitrary.all({
  kind: oneOf("read", "read", "read", "pass", "pass", "suspend", "set back", "edit", "behave", "behave"),
  target: oneOf(...targets),
  millis: oneOf(1, 400, 999, 1_000, 1_001, 3_999, 4_000, 5_000, 3_600_000),
  behavior: oneOf<Behavior>("ok", "ok", "ok", "aged 2", "aged 5", "aged 9", "down", 503, 404, 401, 403)
})

/** The texts that replace the result of a target in an outage. The third target has no such text. */
const substitutes: Readonly<Record<string, string>> = {
  a: "Bundled text bundled",
  b: "Fallback text fallback"
}

const toOutcome = (text: string, source: Source) => `${text} ${source}`

/**
 * The state machine of docs/client.md. Predicts the result of each read: a text with its source, or the status of an
 * error. The age of a text increases while the machine is suspended, but a pause after a failure stops.
 */
class Model {
  behavior: Behavior = "ok"
  readonly texts = new Map(targets.map((target) => [target, `${target} 0`]))
  time = 0
  /** A clock that stops while the machine is suspended. */
  #awake = 0
  #isKeyRejected = false
  /** The cached texts, and the true time at which the service last confirmed each text. */
  #entries = new Map<string, { readonly text: string; readonly confirmedAt: number }>()
  /**
   * The last failure of each target in an outage: the number of consecutive earlier failures, the end of the pause on
   * the clock `#awake`, and the outcome.
   */
  #failures = new Map<
    string,
    { readonly count: number; readonly retryAt: number; readonly outcome: string }
  >()

  pass(millis: number): void {
    this.time += millis
    this.#awake += millis
  }

  /** Returns the age of the responses of the service. */
  get age(): number {
    return 1_000 * Number(/aged (\d)/.exec(String(this.behavior))?.[1] ?? 0)
  }

  read(target: string): string {
    const outcome = this.#readCached(target)
    const isOutage = outcome === "undefined" || outcome === "503"
    return (isOutage && !this.#isKeyRejected && substitutes[target]) || outcome
  }

  #readCached(target: string): string {
    const entry = this.#entries.get(target)
    const age = entry === undefined ? Number.POSITIVE_INFINITY : this.time - entry.confirmedAt
    if (age < ttl) return toOutcome(entry!.text, "cached")
    const failure = this.#failures.get(target)
    const isPaused = failure !== undefined && this.#awake < failure.retryAt
    if (age >= maxAge) return isPaused && failure.count > 0 ? failure.outcome : this.#request(target)
    if (!isPaused) this.#request(target)
    return toOutcome(entry!.text, "stale")
  }

  /** Predicts the outcome of a request, and records the outcome if the service is not available. */
  #request(target: string): string {
    const failure = this.#failures.get(target)
    const hasText = this.#entries.has(target)
    const outcome = this.#respond(target)
    if (this.behavior === "down" || this.behavior === 503) {
      const isRepeated = failure !== undefined && this.#awake < failure.retryAt + 2 * maxPause
      const count = isRepeated ? failure.count + 1 : 0
      const pause = count > (hasText ? 0 : 1) ? maxPause : maxPause / 2
      this.#failures.set(target, { count, retryAt: this.#awake + pause, outcome })
    }
    return outcome
  }

  #respond(target: string): string {
    const { behavior, age } = this
    if (behavior === "down") return "undefined"
    if (typeof behavior === "number") {
      if (behavior === 404) this.#entries.delete(target)
      if (behavior === 401 || behavior === 403) {
        this.#isKeyRejected = true
        this.#entries.clear()
      }
      return String(behavior)
    }
    this.#isKeyRejected = false
    this.#failures.clear()
    const text = this.texts.get(target)!
    const confirmedAt = this.time - age
    const stored = this.#entries.get(target)
    if (stored === undefined || stored.confirmedAt <= confirmedAt)
      this.#entries.set(target, { text, confirmedAt })
    return age > maxAge ? "503" : toOutcome(text, age > 0 ? "stale" : "fresh")
  }
}

testModel(
  "for every order of events, the client returns the result that a model of the cache predicts",
  ["fresh", "cached", "stale", "bundled", "fallback"],
  step,
  () => {
    const model = new Model()
    /** The true time at which the service last confirmed each text. */
    const confirmed = new Map<string, number>()
    let edits = 0
    const { prompts } = new PromptClient({
      apiKey: key,
      maxRetries: 0,
      cache: { ttl, maxStale, maxEntries: 10 },
      bundle,
      fetch: async (url, { headers }) => {
        const { behavior, age, texts, time } = model
        if (behavior === "down") throw new TypeError("fetch failed")
        if (typeof behavior === "number") return errorResponse(behavior)
        const text = texts.get(/(\w+)\/resolved$/.exec(url)![1]!)!
        confirmed.set(text, Math.max(confirmed.get(text) ?? Number.NEGATIVE_INFINITY, time - age))
        const outage = "prompt-retrieval; hit; detail=database-unavailable"
        const fields = {
          etag: `"${text}"`,
          ...(age > 0 && { age: String(age / 1_000), "cache-status": outage })
        }
        return headers["if-none-match"] === fields.etag
          ? new Response(null, { status: 304, headers: fields })
          : textResponse(text, fields)
      }
    })
    return {
      ttl,
      maxAge,
      model,
      read: ({ target }) => [
        model.read(target),
        prompts.getResolved(target, target === "b" ? { fallback: "Fallback text" } : {})
      ],
      getTrueAge: (text) => model.time - confirmed.get(text)!,
      change: ({ kind, target, behavior }) => {
        if (kind === "behave") model.behavior = behavior
        else model.texts.set(target, `${target} ${++edits}`)
      }
    }
  }
)
