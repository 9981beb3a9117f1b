import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../domain/WorkspaceId.ts"
import { Unavailable } from "./ports/Unavailable.ts"

/** The deadline of the reads of a request, in milliseconds. */
const requestDeadlineMs = 5_000

/**
 * Runs the reads of an uncached HTTP request, an MCP call or an in-process read. If the reads do not complete before the
 * deadline, fails with `Unavailable` and interrupts the reads. `Effect.timeoutOrElse` would fail only after the
 * interrupted reads have ended.
 */
export const withRequestDeadline = <A, E>(reads: Effect.Effect<A, E>): Effect.Effect<A, E | Unavailable> =>
  Effect.withFiber(({ context }) =>
    Effect.callback((resume) => {
      const running = Effect.runForkWith(context)(reads)
      const timer = setTimeout(() => {
        resume(Effect.fail(Unavailable))
        running.interruptUnsafe()
      }, requestDeadlineMs)
      running.addObserver((exit) => {
        clearTimeout(timer)
        resume(exit)
      })
      return Effect.sync(() => {
        clearTimeout(timer)
        running.interruptUnsafe()
      })
    })
  )

/**
 * The maximum number of reads of a workspace that run at the same time. The result of a read may take 8 MiB of memory
 * until the result is encoded. A smaller number lets fewer lookups share a statement. With 8, a cold read takes 1.3
 * times the CPU time.
 */
const readsPerWorkspace = 12

/** A step with this many UTF-16 code units or more is large. A smaller step usually takes less than 0.1 ms. */
const minLargeUnits = 32 * 1024

/**
 * The number of event-loop turns before a large step. Node accepts one connection in each turn, so Node accepts this
 * many connections between two large steps. An idle turn takes only microseconds.
 */
const turnsBeforeLargeStep = 32

const waitForTurn = Effect.callback<void>((resume) => {
  const immediate = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(immediate))
})
const turns = Array.from({ length: turnsBeforeLargeStep })
const waitForTurns = Effect.forEach(turns, () => waitForTurn, { discard: true })

/** Estimates a value's size in UTF-16 code units: the sum of the lengths of its texts, plus 8 for each other scalar. */
export const countUnits = (value: unknown): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 8
  let units = 0
  for (const name in value) units += countUnits((value as Record<string, unknown>)[name])
  return units
}

/** Runs an effect as soon as `workspace` has a free permit. */
export type WithPermit = <A, E>(workspace: WorkspaceId, effect: Effect.Effect<A, E>) => Effect.Effect<A, E>

/** Returns a function that runs at most `count` effects of each workspace at the same time. */
export const makeWorkspacePermits = (count: number): WithPermit => {
  /** The permits of each workspace that has effects, and the number of its waiting and running effects. */
  const workspaces = new Map<WorkspaceId, { readonly permits: Semaphore.Semaphore; effects: number }>()
  return (workspace, effect) =>
    Effect.suspend(() => {
      const entry = workspaces.get(workspace) ?? { permits: Semaphore.makeUnsafe(count), effects: 0 }
      entry.effects++
      workspaces.set(workspace, entry)
      const leave = Effect.sync(() => {
        entry.effects--
        if (entry.effects === 0) workspaces.delete(workspace)
      })
      return Effect.ensuring(entry.permits.withPermit(effect), leave)
    })
}

/**
 * Limits how many reads of each workspace run at the same time, and how long large steps occupy the event loop.
 * Resolving and encoding a large value takes many times its size in memory, so only one large step runs at a time.
 * Other callers' requests proceed in the event-loop turns between large steps.
 */
export class ReadGate extends Context.Service<
  ReadGate,
  {
    /** Runs a read, from its statement to the encoded response, as soon as its workspace has a free permit. */
    readonly withPermit: WithPermit
    /** Runs a step of a read. Large steps run one at a time, at least `turnsBeforeLargeStep` turns apart. */
    readonly runStep: <A>(units: number, step: () => A) => Effect.Effect<A>
  }
>()("prompt-retrieval/ReadGate") {
  static readonly layer: Layer.Layer<ReadGate> = Layer.sync(ReadGate, () => {
    const largeStepPermit = Semaphore.makeUnsafe(1)
    return ReadGate.of({
      withPermit: makeWorkspacePermits(readsPerWorkspace),
      runStep: (units, step) =>
        units < minLargeUnits
          ? Effect.sync(step)
          : largeStepPermit.withPermit(Effect.andThen(waitForTurns, Effect.sync(step)))
    })
  })
}
