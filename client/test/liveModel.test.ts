import { it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { expect, vi } from "vitest"
import { FakeService } from "../src/testing.ts"
import { testModel } from "./models.ts"
import { advance, awaitValue, flush, installFakeTime, oneOf, readText } from "./support.ts"

const ttl = 30_000
const maxAge = ttl + 300_000
/** The wait of a request, in milliseconds. A random pause takes half a wait, because `Math.random` returns 0.5. */
const wait = 25_000
/** A request must end at most this long after its wait, in milliseconds. */
const margin = 10_000

/**
 * The behavior of the service: the service waits when a request asks for a wait, sends this `Age` header, never waits
 * because a proxy removes this request header, or fails.
 */
type Behavior = "waits" | "Age: 20" | "prefer" | "if-none-match" | "no connection" | 401 | 503

const step = Arbitrary.all({
  kind: oneOf("read", "read", "pass", "pass", "suspend", "edit", "remove", "behave"),
  millis: oneOf(1, 999, 1_000, 5_000, 12_500, 24_999, 25_000, 29_999, 30_000, 60_000, 330_000),
  behavior: oneOf<Behavior>(
    ...(["waits", "waits", "waits", "Age: 20", "prefer", "if-none-match", "no connection", 401, 503] as const)
  )
})

const isFailure = (behavior: Behavior) => behavior === "no connection" || typeof behavior === "number"

/**
 * The state machine of docs/client.md for a page with one prompt. `time` is the true time. The monotonic clock `awake`
 * stops while the machine is suspended.
 */
class Model {
  behavior: Behavior = "waits"
  /** The text in the service; undefined if the prompt does not exist. */
  stored: string | undefined = "0"
  time = 0
  awake = 0
  requests = 0
  #text: string | undefined
  #confirmedAt = Number.NEGATIVE_INFINITY
  #isRejected = false
  #isPolling = false
  #hasFailed = false
  /** True while a request waits, and false during a pause. */
  #isWaiting = false
  #sentAt = 0
  #timeout = 0
  /** The end of the wait or of the pause, on the monotonic clock. */
  #endsAt = 0

  start(): void {
    this.#request(false)
    this.#request()
  }

  pass(millis: number): void {
    const end = this.awake + millis
    while (this.#endsAt <= end) {
      this.time += this.#endsAt - this.awake
      this.awake = this.#endsAt
      if (this.#isWaiting) this.#confirm(false, true)
      else this.#request()
    }
    this.time += end - this.awake
    this.awake = end
  }

  /** Ends the wait of a request, as the service does after a change. */
  wake(): void {
    if (!this.#isWaiting) return
    if (isFailure(this.behavior)) this.#fail(this.behavior === 401)
    else if (this.#text !== this.stored) this.#confirm(true, false)
  }

  /** Predicts the result of a read: a text and its source, or the status of an error. */
  read(): string {
    const age = this.time - this.#confirmedAt
    if (this.#text !== undefined && age < maxAge && !this.#isRejected)
      return `${this.#text} ${age >= ttl ? "stale" : this.#isWaiting ? "live" : "cached"}`
    this.requests++
    if (this.behavior === 401) this.#isRejected = true
    if (isFailure(this.behavior))
      return this.behavior === "no connection" ? "undefined" : String(this.behavior)
    return this.stored === undefined ? "404" : `${this.stored} fresh`
  }

  #request(isHeld = true): void {
    this.requests++
    this.#sentAt = this.time
    const millis = this.time - this.#confirmedAt >= ttl ? 1_000 : wait
    this.#timeout = millis + margin
    this.#isWaiting = true
    const { behavior } = this
    if (isFailure(behavior)) this.#fail(behavior === 401)
    else if (!isHeld) {
      this.#text = this.stored
      this.#confirmedAt = this.time
    } else if (this.#text !== this.stored) this.#confirm(true, false)
    else if (behavior === "waits" || behavior === "Age: 20") this.#endsAt = this.awake + millis
    else this.#confirm(false, false)
  }

  /** Ends a request that asked for a wait: with a success, or with a failure if the response is too late. */
  #confirm(isChanged: boolean, isApplied: boolean): void {
    if (this.time - this.#sentAt > this.#timeout) {
      this.#fail(false)
      return
    }
    this.#text = this.stored
    this.#confirmedAt = this.time - (this.behavior === "Age: 20" ? 20_000 : 0)
    this.#isRejected = this.#hasFailed = false
    if (isApplied) this.#isPolling = false
    if (isApplied || isChanged) this.#request()
    else {
      this.#pause(this.#isPolling ? ttl : wait / 2)
      this.#isPolling = true
    }
  }

  #fail(isRejection: boolean): void {
    this.#isRejected ||= isRejection
    this.#pause(this.#hasFailed ? wait / 2 + wait : wait / 2)
    this.#hasFailed = true
  }

  #pause(millis: number): void {
    this.#isWaiting = false
    this.#endsAt = this.awake + millis
  }
}

testModel(
  "for every order of events, the client returns the texts and sends the requests that a model of live prompts predicts",
  ["live", "cached", "stale", "fresh"],
  step,
  async () => {
    const model = new Model()
    const service = new FakeService()
    const store = () => {
      if (model.stored === undefined) service.remove("p")
      else service.set({ name: "p", content: model.stored })
    }
    store()
    const client = service.connect().withOptions({
      fetch: async (url, init) => {
        const headers = { ...init.headers }
        delete headers[model.behavior]
        const response = (await service.fetch(url, { ...init, headers })) as Response
        if (model.behavior === "Age: 20") response.headers.set("age", "20")
        return response
      }
    })
    /** The true time at which the service replaced or removed each text. */
    const endedAt = new Map<string, number>()
    let edits = 0
    model.start()
    const live = await client.live(["p"])
    await flush()
    return {
      ttl,
      maxAge,
      model,
      read: () => [model.read(), client.prompts.getResolved("p")],
      getTrueAge: (text) => model.time - (endedAt.get(text) ?? model.time),
      change: ({ kind, behavior }) => {
        if (kind === "behave") {
          model.behavior = behavior
          model.wake()
          service.failWith(isFailure(behavior) ? behavior : undefined)
        } else {
          if (model.stored !== undefined) endedAt.set(model.stored, model.time)
          model.stored = kind === "edit" ? String(++edits) : undefined
          model.wake()
          store()
        }
      },
      check: (result) => {
        if (result?.source === "live" && !isFailure(model.behavior))
          expect(result.data.resolved_content).toBe(model.stored)
        expect(service.requests).toHaveLength(model.requests)
      },
      close: () => live.close()
    }
  }
)

it.live.prop(
  "live prompts miss no edit between two waits, however long requests and responses take",
  {
    delays: Arbitrary.array(oneOf(0, 1, 20, 300), { minLength: 1, maxLength: 10 }),
    gaps: Arbitrary.array(oneOf(0, 1, 19, 40, 301, 24_990), { maxLength: 20 })
  },
  ({ delays, gaps }) =>
    Effect.promise(async () => {
      installFakeTime()
      const service = new FakeService({ prompts: [{ name: "p", content: "start" }] })
      let requests = 0
      const delay = () => new Promise((resolve) => setTimeout(resolve, delays[requests++ % delays.length]))
      const client = service.connect().withOptions({
        fetch: async (url, init) => {
          await delay()
          const response = await service.fetch(url, init)
          await delay()
          return response
        }
      })
      await using _ = await awaitValue(client.live({}))
      for (const [index, gap] of gaps.entries()) {
        await vi.advanceTimersByTimeAsync(gap)
        service.set({ name: "p", content: String(index) })
      }
      await advance(2_000)
      expect(await readText(client)).toBe(`${gaps.length > 0 ? gaps.length - 1 : "start"} (live)`)
    }),
  { arbitrary: { runs: 250 } }
)
