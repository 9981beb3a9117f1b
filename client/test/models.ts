import { it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { expect, vi } from "vitest"
import { installFakeTime } from "./support.ts"

/** Tests every order of steps. `run` compares the client with a model, and returns the sources of the results in order. */
export const testModel = <A>(
  title: string,
  step: Arbitrary.Arbitrary<A>,
  run: (steps: ReadonlyArray<A>) => Promise<ReadonlyArray<string>>,
  sources: ReadonlyArray<string>
): void => {
  const seen: Array<string> = []

  it.live.prop(
    title,
    { steps: Arbitrary.array(step, { minLength: 20, maxLength: 80 }) },
    ({ steps }) =>
      Effect.promise(async () => {
        installFakeTime()
        vi.spyOn(Math, "random").mockReturnValue(0.5)
        try {
          seen.push(...(await run(steps)))
        } finally {
          vi.restoreAllMocks()
          vi.useRealTimers()
        }
      }),
    { arbitrary: { runs: 250 } }
  )

  it("the random steps of the property test produced many results of every source, and many errors", () => {
    for (const source of [...sources, "error"])
      expect(seen.filter((other) => other === source).length, source).toBeGreaterThan(20)
  })
}
