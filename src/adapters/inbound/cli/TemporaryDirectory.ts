import { mkdtemp, rm } from "node:fs/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * Creates a directory that is removed with its contents when the scope closes. The path is `prefix` and random
 * characters. `toError` converts the error of a directory that cannot be created.
 */
export const makeTemporaryDirectory = <E>(
  prefix: string,
  toError: (error: unknown) => E
): Effect.Effect<string, E, Scope.Scope> =>
  Effect.acquireRelease(Effect.tryPromise({ try: () => mkdtemp(prefix), catch: toError }), (directory) =>
    Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
