import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Scope from "effect/Scope"

/** Opens a scope for tests that are not Effects. `release` closes the scope, which releases the acquired resources. */
export const makeResources = () => {
  const scope = Effect.runSync(Scope.make())
  return {
    acquire: <A>(effect: Effect.Effect<A, never, Scope.Scope>): Promise<A> =>
      Effect.runPromise(Scope.provide(effect, scope)),
    release: (): Promise<void> => Effect.runPromise(Scope.close(scope, Exit.void))
  }
}
