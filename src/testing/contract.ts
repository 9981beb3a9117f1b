import type * as Effect from "effect/Effect"
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
