import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import type { Archive } from "../application/transfer/Archive.ts"

/** A test of a contract suite, for any test runner. If the store breaks the rule, `run` fails or dies. */
export interface ContractTest<R> {
  /** The rule that the test checks. */
  readonly name: string
  readonly run: Effect.Effect<void, unknown, R>
}

/**
 * Stores a workspace with its content, users and keys in the store under test. If the workspace exists, its content is
 * replaced, and its users and keys are added or updated.
 */
export type LoadWorkspace<R> = (archive: Archive) => Effect.Effect<unknown, unknown, R>

/**
 * Makes a test that checks generated values. The error of the test contains the smallest violating value that the
 * search finds.
 */
export const makePropertyTest = <A, R>(
  name: string,
  values: Arbitrary.Arbitrary<A>,
  check: (value: A) => Effect.Effect<void, unknown, R>
): ContractTest<R> => ({
  name,
  run: Effect.gen(function* () {
    // A failed assertion is a defect, and a defect would end the search for smaller values. `sandbox` makes the defect
    // a failure.
    const holds = (value: A) => Effect.sandbox(Effect.as(check(value), true))
    const result = yield* Arbitrary.checkEffect(values, holds, { runs: 25, maxShrinks: 100 })
    const failure = Arbitrary.formatCheckFailure(result)
    if (failure !== undefined) return yield* Effect.die(new Error(failure))
  })
})
