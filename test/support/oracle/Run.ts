import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { makeCaller } from "./Caller.ts"
import { type Commit, check, type Observation, type Violation } from "./Checker.ts"
import { generateHistory, type Step } from "./History.ts"
import type { Stage } from "./Stage.ts"
import { readState } from "./State.ts"
import type { World } from "./Changes.ts"

/**
 * How old a response may be, in milliseconds. After its last heartbeat, a change feed stays up for 3 s, and the clocks
 * of two processes may differ slightly. A busy machine needs no reserve: the age counts from the start of the request,
 * and a process that receives no heartbeat in time serves nothing from its caches.
 */
const boundMs = 3_100

/** A disturbance and its span of time. */
interface Disturbed {
  readonly name: string
  readonly startedAt: number
  readonly endedAt: number
}

/** What happened while the history of a seed ran. */
export interface RunResult {
  readonly seed: number
  readonly commits: ReadonlyArray<Commit>
  readonly disturbed: ReadonlyArray<Disturbed>
  readonly observations: ReadonlyArray<Observation>
  readonly violations: ReadonlyArray<Violation>
}

/** Runs one step and returns its commit, or `undefined` if it was rolled back. */
const runStep = (
  { sql, instances }: Stage,
  world: World,
  { change, isRolledBack, cutsFeeds }: Step
): Effect.Effect<Commit | undefined> =>
  sql
    .withTransaction(
      Effect.gen(function* () {
        for (const statement of change.statements) yield* statement
        const state = yield* readState(sql, world)
        if (isRolledBack) return yield* Effect.fail("rolled back" as const)
        // Closes the connections of the feeds. New connections receive nothing.
        if (cutsFeeds) for (const { feed } of instances) yield* Effect.andThen(feed.freeze, feed.cut)
        return { name: change.name, state, startedAt: performance.now() }
      })
    )
    .pipe(
      Effect.map((commit) => ({ ...commit, endedAt: performance.now() })),
      Effect.ensuring(cutsFeeds ? Effect.forEach(instances, ({ feed }) => feed.thaw) : Effect.void),
      Effect.catch((error) => (error === "rolled back" ? Effect.undefined : Effect.die(error)))
    )

/**
 * Runs the history of a seed on a stage while callers read, one per key and instance, and checks every response. After
 * the last change, waits for `boundMs`. Then every caller reads everything once more.
 */
export const runHistory = async (stage: Stage, seed: number): Promise<RunResult> => {
  const { world, steps, disturbances } = generateHistory(stage, seed)
  const { instances } = stage
  const commits: Array<Commit> = []
  const disturbed: Array<Disturbed> = []
  const observations: Array<Observation> = []

  const write = async (steps: ReadonlyArray<Step>) => {
    for (const step of steps) {
      await setTimeout(step.pauseMs)
      const commit = await Effect.runPromise(runStep(stage, world, step))
      if (commit !== undefined) commits.push(commit)
    }
  }
  const disturb = async () => {
    for (const { pauseMs, name, run } of disturbances) {
      await setTimeout(pauseMs)
      const startedAt = performance.now()
      await run()
      disturbed.push({ name, startedAt, endedAt: performance.now() })
    }
  }
  const listReadable = (key: number): ReadonlyArray<string> => {
    const { admissions, contents } = commits.at(-1)!.state
    return [...(contents.get(admissions[key]!.workspace ?? "")?.keys() ?? [])]
  }
  const callers = instances.flatMap((instance, i) =>
    world.keys.map((_, key) =>
      makeCaller(instance, key, world, 1_000 * seed + 100 * i + key, () => listReadable(key), observations)
    )
  )

  const [first, ...others] = steps
  await write([first!])
  const reading = callers.map(({ run }) => run())
  try {
    await Promise.all([write(others), disturb()])
    await setTimeout(boundMs)
  } finally {
    for (const { stop } of callers) stop()
    await Promise.all(reading)
    for (const { reads } of instances) reads.delay(0)
  }
  await Promise.all(callers.map(({ readAll }) => readAll()))
  return { seed, commits, disturbed, observations, violations: check(commits, observations, boundMs) }
}
