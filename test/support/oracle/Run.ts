import { setTimeout } from "node:timers/promises"
import { makeRandom } from "../random.ts"
import { Caller } from "./Caller.ts"
import { check, type Violation } from "./Checker.ts"
import { describeDisturbance, disturb } from "./Disturbances.ts"
import type { History } from "./History.ts"
import type { Stage } from "./Stage.ts"
import type { Commit, Disturbed, Observation, Timeline } from "./Timeline.ts"
import { createWorld, write } from "./Writer.ts"

/**
 * How old a response may be, in milliseconds. After its last heartbeat, a change feed stays up for 3 s, and the clocks
 * of two processes may differ slightly. A busy machine needs no reserve: the age counts from the start of the request,
 * and a process that receives no heartbeat in time serves nothing from its caches.
 */
export const boundMs = 3_100

export interface RunResult {
  readonly history: History
  readonly timeline: Timeline
  readonly violations: ReadonlyArray<Violation>
}

/**
 * Runs a history on a stage while callers read, one per key and instance, and checks every response. After the last
 * change, waits for `boundMs`. Then every caller reads everything once more.
 */
export const runHistory = async (stage: Stage, history: History): Promise<RunResult> => {
  const { world, steps, disturbances, seed } = history
  const commits: Array<Commit> = [await createWorld(stage.sql, world)]
  const disturbed: Array<Disturbed> = []
  const observations: Array<Observation> = []
  const listReadable = (key: number): ReadonlyArray<string> => {
    const { admissions, contents } = commits.at(-1)!.state
    const admission = admissions[key]!
    return "workspace" in admission ? [...contents.get(admission.workspace)!.keys()] : []
  }
  const callers = stage.instances.flatMap((instance, i) =>
    world.keys.map(
      (_, key) =>
        new Caller({
          instance,
          key,
          world,
          random: makeRandom(1_000 * seed + 100 * i + key),
          listReadable: () => listReadable(key),
          observations
        })
    )
  )
  const reading = callers.map((caller) => caller.run())
  const disturbAll = async () => {
    for (const disturbance of disturbances) {
      const startedAt = performance.now()
      await disturb(stage, disturbance)
      disturbed.push({ name: describeDisturbance(disturbance), startedAt, endedAt: performance.now() })
    }
  }
  try {
    await Promise.all([write(stage.sql, stage.instances, world, steps, commits), disturbAll()])
    await setTimeout(boundMs)
  } finally {
    for (const caller of callers) caller.stop()
    await Promise.all(reading)
    for (const { reads } of stage.instances) reads.delay(0)
  }
  await Promise.all(callers.map((caller) => caller.readAll()))
  const timeline = { commits, disturbed, observations }
  return { history, timeline, violations: check(timeline, boundMs) }
}
