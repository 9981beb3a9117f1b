import * as Arbitrary from "effect/Arbitrary"
import { expect, vi } from "vitest"
import { getStatus } from "../src/Errors.ts"
import { PromptClient, type Source } from "../src/index.ts"
import { testModel } from "./models.ts"
import { makeBundle } from "./pull/bundles.ts"
import { errorResponse, flush, key, oneOf, settle, textResponse } from "./support.ts"

const ttl = 1_000
const maxStale = 4_000
const maxAge = ttl + maxStale
/** The longest pause between the requests for a target in an outage. In this test, random pauses are half as long. */
const maxPause = 0.9 * ttl

/** How the service responds: normally, with a text of this age in seconds, with an error, or not at all. */
type Behavior = "ok" | "aged 2" | "aged 5" | "aged 9" | "down" | 401 | 403 | 404 | 503

/**
 * One step of a test: a read of a target, time that passes, a clock event, or a change of the service. The machine is
 * suspended, so that only the wall clock advances, or the wall clock is set back. A test has only one of these two clock
 * events, the event of its first step, because they could cancel each other out.
 */
interface Step {
  readonly kind: "read" | "pass" | "clock" | "edit" | "behave"
  readonly target: string
  readonly millis: number
  readonly behavior: Behavior
  readonly clockEvent: "suspend" | "set back"
}

const targets = ["a", "b", "c"]
const bundle = makeBundle({ name: "a", content: "Bundled text" })
const step: Arbitrary.Arbitrary<Step> = Arbitrary.map(
  Arbitrary.all([
    oneOf("read", "read", "read", "pass", "pass", "clock", "edit", "behave", "behave"),
    oneOf(...targets),
    oneOf(1, 400, 999, 1_000, 1_001, 3_999, 4_000, 5_000, 3_600_000),
    oneOf<Behavior>("ok", "ok", "ok", "aged 2", "aged 5", "aged 9", "down", 503, 404, 401, 403),
    oneOf<Step["clockEvent"]>("suspend", "set back")
  ]),
  ([kind, target, millis, behavior, clockEvent]) => ({ kind, target, millis, behavior, clockEvent })
)

/** The expected result of a read: a text and its source, or the status of an error response, if any. */
type Outcome = readonly [text: string, Source] | { readonly status: number | undefined }

/** The texts that replace the result of a target in an outage. The third target has none. */
const substitutes: Readonly<Record<string, readonly [text: string, Source]>> = {
  a: ["Bundled text", "bundled"],
  b: ["Fallback text", "fallback"]
}

/**
 * The state machine of docs/client.md: predicts what each read returns. Ages include the time in which the machine was
 * suspended, and pauses after failures do not.
 */
class Model {
  #isKeyRejected = false
  /** The cached texts, and the true time at which the service last confirmed each text. */
  #entries = new Map<string, { readonly text: string; readonly confirmedAt: number }>()
  /**
   * The last failure of each target in an outage, with the number of consecutive earlier failures, and the end of the pause
   * on a clock that stops while the machine is suspended.
   */
  #failures = new Map<
    string,
    { readonly count: number; readonly retryAt: number; readonly outcome: Outcome }
  >()

  read(target: string, time: number, timeAwake: number, behavior: Behavior, text: string): Outcome {
    const outcome = this.#readCached(target, time, timeAwake, behavior, text)
    const isOutage = "status" in outcome && [undefined, 503].includes(outcome.status)
    return (isOutage && !this.#isKeyRejected && substitutes[target]) || outcome
  }

  #readCached(target: string, time: number, timeAwake: number, behavior: Behavior, text: string): Outcome {
    const entry = this.#entries.get(target)
    const age = entry === undefined ? Number.POSITIVE_INFINITY : time - entry.confirmedAt
    if (age < ttl) return [entry!.text, "cached"]
    const failure = this.#failures.get(target)
    const isPaused = failure !== undefined && timeAwake < failure.retryAt
    if (age >= maxAge)
      return isPaused && failure.count > 0
        ? failure.outcome
        : this.#request(target, time, timeAwake, behavior, text)
    if (!isPaused) this.#request(target, time, timeAwake, behavior, text)
    return [entry!.text, "stale"]
  }

  /** Predicts the outcome of a request, and records the outcome if it is an outage. */
  #request(target: string, time: number, timeAwake: number, behavior: Behavior, text: string): Outcome {
    const failure = this.#failures.get(target)
    const hasText = this.#entries.has(target)
    const outcome = this.#respond(target, time, behavior, text)
    if (behavior === "down" || behavior === 503) {
      const isRepeated = failure !== undefined && timeAwake < failure.retryAt + 2 * maxPause
      const count = isRepeated ? failure.count + 1 : 0
      this.#failures.set(target, {
        count,
        retryAt: timeAwake + (count > (hasText ? 0 : 1) ? maxPause : maxPause / 2),
        outcome
      })
    }
    return outcome
  }

  #respond(target: string, time: number, behavior: Behavior, text: string): Outcome {
    if (behavior === "down") return { status: undefined }
    if (typeof behavior === "number") {
      if (behavior === 404) this.#entries.delete(target)
      if (behavior === 401 || behavior === 403) {
        this.#isKeyRejected = true
        this.#entries.clear()
      }
      return { status: behavior }
    }
    this.#isKeyRejected = false
    this.#failures.clear()
    const age = behavior === "ok" ? 0 : Number(behavior.slice(-1)) * 1_000
    const confirmedAt = time - age
    const stored = this.#entries.get(target)
    if (stored === undefined || stored.confirmedAt <= confirmedAt)
      this.#entries.set(target, { text, confirmedAt })
    return age > maxAge ? { status: 503 } : [text, age > 0 ? "stale" : "fresh"]
  }
}

/** Runs the steps against the client and the model. Returns the sources of the results in order. */
const run = async (steps: ReadonlyArray<Step>): Promise<ReadonlyArray<string>> => {
  const model = new Model()
  const texts = new Map(targets.map((target) => [target, `${target} 0`]))
  /** When the service last confirmed each text, by the true time. */
  const confirmed = new Map<string, number>()
  const seen: Array<string> = []
  let behavior: Behavior = "ok"
  let time = 0
  let timeAwake = 0
  let edits = 0
  const client = new PromptClient({
    apiKey: key,
    maxRetries: 0,
    cache: { ttl, maxStale, maxEntries: 10 },
    bundle,
    fetch: async (url, { headers }) => {
      const target = new URL(url).pathname.slice("/api/v1/prompts/".length).replace("/resolved", "")
      if (behavior === "down") throw new TypeError("fetch failed")
      if (typeof behavior === "number") return errorResponse(behavior)
      const text = texts.get(target)!
      const age = behavior === "ok" ? 0 : Number(behavior.slice(-1))
      confirmed.set(text, Math.max(confirmed.get(text) ?? Number.NEGATIVE_INFINITY, time - age * 1_000))
      const outage = "prompt-retrieval; hit; detail=database-unavailable"
      const fields = { etag: `"${text}"`, ...(age > 0 && { age: String(age), "cache-status": outage }) }
      return headers["if-none-match"] === fields.etag
        ? new Response(null, { status: 304, headers: fields })
        : textResponse(text, fields)
    }
  })
  for (const { kind, target, millis, behavior: nextBehavior } of steps) {
    if (kind === "behave") behavior = nextBehavior
    else if (kind === "edit") texts.set(target, `${target} ${++edits}`)
    else if (kind === "pass") {
      time += millis
      timeAwake += millis
      await vi.advanceTimersByTimeAsync(millis)
    } else if (kind === "clock") {
      const isSuspended = steps[0]!.clockEvent === "suspend"
      if (isSuspended) time += millis
      vi.setSystemTime(Date.now() + (isSuspended ? millis : -millis))
    } else {
      const expected = model.read(target, time, timeAwake, behavior, texts.get(target)!)
      const options = target === "b" ? { fallback: "Fallback text" } : {}
      const outcome = await settle(client.prompts.getResolved(target, options))
      await flush()
      if ("error" in outcome) {
        expect({ status: getStatus(outcome.error) }).toEqual(expected)
        seen.push("error")
        continue
      }
      const { data, source, age } = outcome.value
      expect([data.resolved_content, source]).toEqual(expected)
      seen.push(source)
      if (source === "bundled" || source === "fallback") continue
      // These rules do not depend on the model.
      const trueAge = time - confirmed.get(data.resolved_content)!
      expect(trueAge).toBeLessThanOrEqual(maxAge)
      expect(age).toBeGreaterThanOrEqual(trueAge)
      if (source === "cached") expect(age).toBeLessThan(ttl)
    }
  }
  return seen
}

testModel(
  "for every order of events, the client returns the result that a model of the cache predicts",
  step,
  run,
  ["fresh", "cached", "stale", "bundled", "fallback"]
)
