import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"

/**
 * Runs reads so that who asks for the same at the same time waits for one of them: a read goes on for the others when
 * one of them is interrupted. `change` is the number of the last change that the read may depend on, as it is asked
 * for: who asks after a change never gets what was read from before it, so nothing is shared while changes can't be
 * heard of. What `key` stands for must be the same each time.
 */
export const makeSharedReads = <A, E>() => {
  const underWay = new Map<string, { readonly change: number; readonly result: Deferred.Deferred<A, E> }>()
  return (key: string, change: number | undefined, read: Effect.Effect<A, E>): Effect.Effect<A, E> => {
    if (change === undefined) return read
    const other = underWay.get(key)
    if (other?.change === change) return Deferred.await(other.result)
    const own = { change, result: Deferred.makeUnsafe<A, E>() }
    underWay.set(key, own)
    return read.pipe(
      Effect.onExit((exit) =>
        Effect.suspend(() => {
          if (underWay.get(key) === own) underWay.delete(key)
          return Deferred.done(own.result, exit)
        })
      ),
      Effect.forkDetach({ startImmediately: true }),
      Effect.andThen(Deferred.await(own.result))
    )
  }
}
