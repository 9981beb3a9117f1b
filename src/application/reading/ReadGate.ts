import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"

/**
 * The number of reads of a workspace that run at the same time. It must be less than the number of connections for
 * reads, so that slow statements of one workspace leave a connection for the others. The result of each read may take
 * about 8 MiB of memory until it is encoded.
 */
export const ReadsPerWorkspace = Context.Reference<number>("prompt-retrieval/ReadsPerWorkspace", {
  defaultValue: () => 3
})

/**
 * A step is large if it processes at least this many UTF-16 code units. A smaller step usually takes less than a tenth
 * of a millisecond.
 */
const minLargeUnits = 32 * 1024

/**
 * The number of event-loop turns before a large step. Node accepts one connection in each turn, so it accepts this many
 * connections between two large steps. An idle turn takes only microseconds.
 */
const turnsBeforeLargeStep = 32

const waitForTurns = Effect.callback<void>((resume) => {
  let turns = 0
  const countTurn = (): void => {
    turns++
    if (turns === turnsBeforeLargeStep) resume(Effect.void)
    else immediate = setImmediate(countTurn)
  }
  let immediate = setImmediate(countTurn)
  return Effect.sync(() => clearImmediate(immediate))
})

/**
 * Estimates the size of a value in UTF-16 code units: the lengths of all texts in the value, and 8 for each other
 * scalar.
 */
export const countUnits = (value: unknown): number => {
  if (typeof value === "string") return value.length
  if (typeof value !== "object" || value === null) return 8
  let units = 0
  for (const name in value) units += countUnits((value as Record<string, unknown>)[name])
  return units
}

/**
 * Bounds the work of each workspace: how many of its reads run at the same time, and how long their steps occupy the
 * event loop. A large value takes many times its size while it is resolved and encoded, so one large step runs at a
 * time, and the requests of other callers proceed in the turns of the event loop between large steps.
 */
export class ReadGate extends Context.Service<
  ReadGate,
  {
    /** Runs a read of a workspace, from its statement to the encoded response, when the workspace has a permit for it. */
    readonly withPermit: <A, E>(workspace: WorkspaceId, read: Effect.Effect<A, E>) => Effect.Effect<A, E>
    /**
     * Runs one step of a read: at once if the step is small, otherwise when no other large step runs and the event loop
     * has completed `turnsBeforeLargeStep` turns.
     */
    readonly run: <A>(units: number, step: () => A) => Effect.Effect<A>
  }
>()("prompt-retrieval/ReadGate") {
  static readonly layer: Layer.Layer<ReadGate> = Layer.effect(
    ReadGate,
    Effect.gen(function* () {
      const readsPerWorkspace = yield* ReadsPerWorkspace
      /** The permits of the workspaces that have reads, and the number of their reads that run or wait. */
      const gates = new Map<WorkspaceId, { readonly permits: Semaphore.Semaphore; reads: number }>()
      const largeStepPermit = Semaphore.makeUnsafe(1)

      return ReadGate.of({
        withPermit: (workspace, read) =>
          Effect.suspend(() => {
            const gate = gates.get(workspace) ?? {
              permits: Semaphore.makeUnsafe(readsPerWorkspace),
              reads: 0
            }
            gate.reads++
            gates.set(workspace, gate)
            const leave = Effect.sync(() => {
              gate.reads--
              if (gate.reads === 0) gates.delete(workspace)
            })
            return Effect.ensuring(gate.permits.withPermit(read), leave)
          }),
        run: (units, step) =>
          units < minLargeUnits
            ? Effect.sync(step)
            : largeStepPermit.withPermit(Effect.andThen(waitForTurns, Effect.sync(step)))
      })
    })
  )
}
