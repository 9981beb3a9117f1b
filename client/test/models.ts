import { it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { expect, vi } from "vitest"
import type { ResolvedPrompt, Single, Source } from "../src/index.ts"
import { getStatus } from "../src/Outages.ts"
import { flush, installFakeTime, settle, useFakeTime } from "./support.ts"

type Resolved = Single<ResolvedPrompt, Source>

/** A client and its model. Times are in milliseconds. */
interface Comparison<A> {
  readonly ttl: number
  readonly maxAge: number
  /** `time` is the true time. `pass` advances the clocks of the model. */
  readonly model: { time: number; pass(millis: number): void }
  /** Reads a prompt. Returns the prediction (text and source, or status), and the promise of the result. */
  readonly read: (step: A) => readonly [expected: string, result: Promise<Resolved>]
  /** Returns the true age of a text. */
  readonly getTrueAge: (text: string) => number
  readonly change: (step: A) => void
  /** Checks further rules after each step. After a read, `result` is the result of the read. */
  readonly check?: (result?: Resolved) => void
  readonly close?: () => void
}

/**
 * Compares a client with its model for every order of steps: reads, time that passes, changes of the service, and clock
 * events. While the machine is suspended, only the wall clock advances. A test either suspends the machine or sets the
 * wall clock back, because the two events could cancel each other out.
 */
export const testModel = <A extends { readonly kind: string; readonly millis: number }>(
  title: string,
  sources: ReadonlyArray<Source>,
  step: Arbitrary.Arbitrary<A>,
  start: () => Comparison<A> | Promise<Comparison<A>>
): void => {
  const seen: Array<string> = []

  const run = async (steps: ReadonlyArray<A>) => {
    const { ttl, maxAge, model, read, getTrueAge, change, check, close } = await start()
    const isClockEvent = (kind: string) => kind === "suspend" || kind === "set back"
    const clockEvent = steps.find(({ kind }) => isClockEvent(kind))?.kind
    for (const step of steps) {
      const { kind, millis } = step
      let result: Resolved | undefined
      if (kind === "pass") {
        model.pass(millis)
        await vi.advanceTimersByTimeAsync(millis)
      } else if (kind === "read") {
        const [expected, promise] = read(step)
        const outcome = await settle(promise)
        if ("error" in outcome) expect(String(getStatus(outcome.error))).toBe(expected)
        else {
          result = outcome.value
          const text = result.data.resolved_content
          expect(`${text} ${result.source}`).toBe(expected)
          if (result.age !== undefined) {
            expect(getTrueAge(text)).toBeLessThanOrEqual(Math.min(maxAge, result.age))
            if (result.source !== "stale") expect(result.age).toBeLessThan(ttl)
          }
        }
        seen.push(result?.source ?? "error")
      } else if (!isClockEvent(kind)) change(step)
      else if (kind === clockEvent) {
        const isSuspended = kind === "suspend"
        if (isSuspended) model.time += millis
        vi.setSystemTime(Date.now() + (isSuspended ? millis : -millis))
      }
      await flush()
      check?.(result)
    }
    close?.()
    await flush()
    expect(vi.getTimerCount()).toBe(0)
  }

  useFakeTime(0.5)

  it.live.prop(
    title,
    { steps: Arbitrary.array(step, { minLength: 20, maxLength: 80 }) },
    ({ steps }) =>
      Effect.promise(() => {
        installFakeTime()
        return run(steps)
      }),
    { arbitrary: { runs: 250 } }
  )

  it("the random steps of the property test produced many results of every source, and many errors", () => {
    for (const source of [...sources, "error"])
      expect(seen.filter((other) => other === source).length, source).toBeGreaterThan(20)
  })
}
