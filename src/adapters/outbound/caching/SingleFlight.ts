import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"

interface UnderWay<A, E> {
  /** The number of the last change that the read may depend on. */
  readonly change: number
  /** How it ended, for whoever waits for it, if anybody does. */
  ended: Deferred.Deferred<Exit.Exit<A, E>> | undefined
}

/**
 * Runs reads so that who asks for the same at the same time waits for one of them. When who runs it is interrupted,
 * one of the others runs it anew. `change` is the number of the last change that the read may depend on, as it is
 * asked for: who asks after a change never gets what was read from before it, so nothing is shared while changes
 * can't be heard of. What `key` stands for must be the same each time.
 */
export const makeSingleFlight = <A, E>() => {
  const underWay = new Map<string, UnderWay<A, E>>()
  const share = (key: string, change: number | undefined, read: Effect.Effect<A, E>): Effect.Effect<A, E> => {
    if (change === undefined) return read
    // Nobody is interrupted between his entry and what ends it.
    return Effect.uninterruptibleMask((restore) => {
      const other = underWay.get(key)
      if (other?.change === change) {
        other.ended ??= Deferred.makeUnsafe()
        return Effect.flatMap(restore(Deferred.await(other.ended)), (exit) =>
          Exit.isFailure(exit) && Cause.hasInterruptsOnly(exit.cause)
            ? restore(share(key, change, read))
            : exit
        )
      }
      const own: UnderWay<A, E> = { change, ended: undefined }
      underWay.set(key, own)
      return Effect.onExit(restore(read), (exit) => {
        if (underWay.get(key) === own) underWay.delete(key)
        return own.ended === undefined ? Effect.void : Deferred.succeed(own.ended, exit)
      })
    })
  }
  return share
}
