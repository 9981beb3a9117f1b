import { mkdtemp, rm } from "node:fs/promises"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"

/**
 * Creates a directory that is removed with its contents when the scope closes. The path is `prefix` followed by random
 * characters. If the directory cannot be created, `toError` converts the error.
 */
export const makeTemporaryDirectory = <E>(
  prefix: string,
  toError: (error: unknown) => E
): Effect.Effect<string, E, Scope.Scope> =>
  Effect.acquireRelease(Effect.tryPromise({ try: () => mkdtemp(prefix), catch: toError }), (directory) =>
    Effect.promise(() => rm(directory, { recursive: true, force: true }))
  )
