import * as assert from "node:assert/strict"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import type { Archive } from "../application/transfer/Archive.ts"
import type { Page } from "../domain/Page.ts"

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

export class ContractTests<R> {
  readonly tests: Array<ContractTest<R>> = []

  add(name: string, run: () => Effect.Effect<void, unknown, R>): void {
    this.tests.push({ name, run: Effect.suspend(run) })
  }

  /**
   * Adds a test that checks generated values. The error of the test contains the smallest violating value that the
   * search finds.
   */
  addProperty<A>(
    name: string,
    values: Arbitrary.Arbitrary<A>,
    check: (value: A) => Effect.Effect<void, unknown, R>,
    runs = 25
  ): void {
    // A failed assertion is a defect, and a defect would end the search for smaller values. `sandbox` makes the defect
    // a failure.
    const holds = (value: A) =>
      Effect.sandbox(
        Effect.as(
          Effect.suspend(() => check(value)),
          true
        )
      )
    this.add(name, () =>
      Effect.flatMap(Arbitrary.checkEffect(values, holds, { runs, maxShrinks: 100 }), (result) => {
        const failure = Arbitrary.formatCheckFailure(result)
        return failure === undefined ? Effect.void : Effect.die(new Error(failure))
      })
    )
  }
}

/** The page that contains a whole list of at most 100 items. */
export const wholeList: Page = { page: 1, per_page: 100 }

const perPages = [1, 2, 3, 7, 100]

/** Asserts that each page of a list, up to one page past its end, is the matching slice of the whole list. */
export const assertPages = Effect.fnUntraced(function* <A, E, R>(
  read: (page: Page) => Effect.Effect<{ readonly items: ReadonlyArray<A>; readonly total: number }, E, R>,
  whole: ReadonlyArray<A>
) {
  assert.deepStrictEqual(yield* read(wholeList), { items: whole, total: whole.length })
  for (const per_page of perPages) {
    const pages = Math.ceil(whole.length / per_page) + 1
    for (let page = 1; page <= pages; page++) {
      assert.deepStrictEqual(yield* read({ page, per_page }), {
        items: whole.slice((page - 1) * per_page, page * per_page),
        total: whole.length
      })
    }
  }
})

export const withUndefined = <A>(values: ReadonlyArray<A>): ReadonlyArray<A | undefined> => [
  undefined,
  ...values
]
