import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/**
 * The number of reads of a workspace that may run at the same time, at first and after a large read. The result of each
 * read may take about 8 MiB of memory until it is encoded.
 */
const maxLargeReads = 4
/** The number of reads of a workspace that may run at the same time after many small reads. */
const maxSmallReads = 32
/** The largest number of workspaces whose permits are kept. */
const maxWorkspaces = 10_000

/**
 * A step is large if it processes at least this many UTF-16 code units. A smaller step usually takes less than a tenth
 * of a millisecond.
 */
const minLargeUnits = 32 * 1024

/**
 * The number of event-loop turns between two large steps. Node accepts one connection in each turn, so it accepts this
 * many connections between two large steps. An empty turn takes only microseconds.
 */
const turnsBetweenLargeSteps = 16

/** The permits of one workspace. */
class Permits {
  readonly #semaphore = Semaphore.makeUnsafe(maxLargeReads)
  #limit = maxLargeReads
  /** The number of calls of `restrict`. */
  #restrictions = 0

  /** Resets the limit to `maxLargeReads`. */
  readonly restrict: Effect.Effect<void> = Effect.suspend(() => {
    this.#restrictions++
    return this.#resize(maxLargeReads)
  })

  /**
   * Waits for a permit, then runs a read. If the read succeeds and `restrict` was not called meanwhile, raises the
   * limit by one, up to `maxSmallReads`.
   */
  run<A, E>(read: Effect.Effect<A, E>): Effect.Effect<A, E> {
    return this.#semaphore.withPermit(
      Effect.suspend(() => {
        const restrictions = this.#restrictions
        return Effect.tap(read, () =>
          this.#limit < maxSmallReads && this.#restrictions === restrictions
            ? this.#resize(this.#limit + 1)
            : Effect.void
        )
      })
    )
  }

  #resize(limit: number): Effect.Effect<void> {
    this.#limit = limit
    return this.#semaphore.resize(limit)
  }
}

/** Makes the function that returns the permits of a workspace. */
const makeFindPermits = () => {
  /** The workspace that was read last is the last entry. */
  const permitsByWorkspace = new Map<WorkspaceId, Permits>()
  return (workspace: WorkspaceId): Permits => {
    const permits = permitsByWorkspace.get(workspace) ?? new Permits()
    permitsByWorkspace.delete(workspace)
    permitsByWorkspace.set(workspace, permits)
    const [leastRecent] = permitsByWorkspace.keys()
    if (permitsByWorkspace.size > maxWorkspaces && leastRecent !== undefined)
      permitsByWorkspace.delete(leastRecent)
    return permits
  }
}

/** Makes the effect that waits until the next large step may start. */
const makeWaitForTurn = (): Effect.Effect<void> => {
  const waiting: Array<() => void> = []
  let turnsLeft = 0

  const countDown = (): void => {
    turnsLeft--
    if (turnsLeft === 0) {
      const start = waiting.shift()
      if (waiting.length > 0) startCountdown()
      start?.()
    } else setImmediate(countDown)
  }

  const startCountdown = (): void => {
    turnsLeft = turnsBetweenLargeSteps
    setImmediate(countDown)
  }

  return Effect.callback((resume) => {
    waiting.push(() => resume(Effect.void))
    if (turnsLeft === 0) startCountdown()
  })
}

/**
 * Estimates the size of a value in UTF-16 code units: the lengths of all texts in the value, and 8 for each other
 * scalar.
 */
const countUnits = (value: unknown): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 8
  let units = 0
  for (const name in value) units += countUnits((value as Record<string, unknown>)[name])
  return units
}

/**
 * Limits the reads of each workspace that run at the same time, and spreads large steps over turns of the event loop.
 * This bounds the memory that one workspace takes, and the time for which it occupies the database and the event loop.
 */
export class ReadScheduler extends Context.Service<
  ReadScheduler,
  {
    /**
     * Runs a read of a workspace, from the query to the encoded response. First waits while too many other reads of the
     * workspace run.
     *
     * The size of a read is known only after the read has run. A workspace therefore starts with `maxLargeReads`
     * permits. Each small read that succeeds adds one permit, up to `maxSmallReads`, and each large step resets the
     * workspace to `maxLargeReads` permits.
     */
    readonly withPermit: <A, E>(workspace: WorkspaceId, read: Effect.Effect<A, E>) => Effect.Effect<A, E>
    /**
     * If the next step of a read is large, resets the permits of the workspace and waits for a turn of the event loop
     * in which no other large step starts. Without this wait, the steps of many large responses would add up to a long
     * pause of the process. If the next step is not large, returns immediately. `units` is the length of the text that
     * the step processes, in UTF-16 code units.
     */
    readonly takeTurn: (workspace: WorkspaceId, units: number) => Effect.Effect<void>
    /** Runs a read of a workspace, then waits for a turn in which the caller may process the result. */
    readonly takeTurnFor: <A, E>(workspace: WorkspaceId, read: Effect.Effect<A, E>) => Effect.Effect<A, E>
    /**
     * Encodes the result of a read to JSON, and the JSON to bytes. For a large result, these are two steps, each in its
     * own turn. The JSON of a large result takes several times the memory of the result, so only one large result is
     * encoded at a time.
     */
    readonly encode: <A, B>(
      workspace: WorkspaceId,
      result: A,
      toJson: (result: A) => string,
      toBytes: (json: string) => B
    ) => Effect.Effect<B>
  }
>()("prompt-retrieval/ReadScheduler") {
  static readonly layer: Layer.Layer<ReadScheduler> = Layer.sync(ReadScheduler, () => {
    const findPermits = makeFindPermits()
    const waitForTurn = makeWaitForTurn()
    const encodePermit = Semaphore.makeUnsafe(1)

    const takeTurn = (workspace: WorkspaceId, units: number): Effect.Effect<void> =>
      units < minLargeUnits
        ? Effect.void
        : Effect.andThen(
            Effect.suspend(() => findPermits(workspace).restrict),
            waitForTurn
          )

    return ReadScheduler.of({
      withPermit: (workspace, read) => Effect.suspend(() => findPermits(workspace).run(read)),
      takeTurn,
      takeTurnFor: (workspace, read) => Effect.tap(read, (result) => takeTurn(workspace, countUnits(result))),
      encode: (workspace, result, toJson, toBytes) => {
        const units = countUnits(result)
        if (units < minLargeUnits) return Effect.sync(() => toBytes(toJson(result)))
        return takeTurn(workspace, units).pipe(
          Effect.andThen(Effect.sync(() => toJson(result))),
          Effect.tap((json) => takeTurn(workspace, json.length)),
          Effect.map(toBytes),
          encodePermit.withPermit
        )
      }
    })
  })
}
