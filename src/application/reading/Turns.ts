import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { WorkspaceId } from "../../domain/WorkspaceId.ts"
import { restrictReads } from "./ReadPermits.ts"

// All services of a process share one event loop, so they also share the state of this module.

/**
 * A step is large if it processes at least this many UTF-16 code units. A smaller step usually takes less than a tenth
 * of a millisecond.
 */
const smallUnits = 32 * 1024

/**
 * The number of event-loop turns between two large steps. Node accepts one connection in each turn, so it accepts this
 * many connections between two large steps. An empty turn takes only microseconds.
 */
const turnsBetween = 16

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
  turnsLeft = turnsBetween
  setImmediate(countDown)
}

const waitForTurn: Effect.Effect<void> = Effect.callback((resume) => {
  waiting.push(() => resume(Effect.void))
  if (turnsLeft === 0) startCountdown()
})

/**
 * If the next step is large, limits the reads of the workspace (`restrictReads`) and waits for a turn of the event loop
 * in which no other large step starts. Without this wait, the steps of many large responses would add up to a long
 * pause of the process. If the next step is not large, returns immediately.
 *
 * @param workspace the workspace that the text belongs to
 * @param units the length of the text in UTF-16 code units
 */
export const takeTurn = (workspace: WorkspaceId, units: number): Effect.Effect<void> =>
  units < smallUnits ? Effect.void : Effect.andThen(restrictReads(workspace), waitForTurn)

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

/** Runs a read of a workspace, then waits for a turn in which the caller may process the result. */
export const takeTurnFor = <A, E>(workspace: WorkspaceId, read: Effect.Effect<A, E>): Effect.Effect<A, E> =>
  Effect.tap(read, (result) => takeTurn(workspace, countUnits(result)))

const encoding = Semaphore.makeUnsafe(1)

/**
 * Encodes the result of a read to JSON, and the JSON to bytes. For a large result, these are two steps, each in its own
 * turn. The JSON of a large result takes several times the memory of the result, so only one large result is encoded at
 * a time.
 */
export const encodeInTurns = <A, B>(
  workspace: WorkspaceId,
  result: A,
  toJson: (result: A) => string,
  toBytes: (json: string) => B
): Effect.Effect<B> => {
  const units = countUnits(result)
  if (units < smallUnits) return Effect.sync(() => toBytes(toJson(result)))
  const encode = Effect.andThen(
    takeTurn(workspace, units),
    Effect.sync(() => toJson(result))
  ).pipe(
    Effect.tap((json) => takeTurn(workspace, json.length)),
    Effect.map(toBytes)
  )
  return encoding.withPermit(encode)
}
