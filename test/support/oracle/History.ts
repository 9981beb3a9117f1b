import * as Effect from "effect/Effect"
import { makeRandom, type Random } from "../random.ts"
import { type Change, makeChanges, makeWorld, type World } from "./Changes.ts"
import type { Stage } from "./Stage.ts"

/** One transaction of the writer, and the pause before it. */
export interface Step {
  readonly pauseMs: number
  readonly change: Change
  readonly isRolledBack?: boolean
  /** True if the change feeds of all instances are cut off while the transaction commits. */
  readonly cutsFeeds?: boolean
}

/** Something that happens to the processes or their connections, and the pause before it. */
interface Disturbance {
  readonly pauseMs: number
  readonly name: string
  /** Resolves once the processes run again. */
  readonly run: () => Promise<unknown>
}

/** The changes of the database and the disturbances. The seed determines them, but not their interleaving. */
export interface History {
  readonly seed: number
  readonly world: World
  /** The first step creates the world. */
  readonly steps: ReadonlyArray<Step>
  /** The disturbances happen one after another, while the steps run. */
  readonly disturbances: ReadonlyArray<Disturbance>
}

const stepCount = 40
const maxPauseMs = 120
const maxDisturbances = 3

const makeDisturbance = (random: Random, { instances, restartPooler }: Stage): Disturbance => {
  const pauseMs = 200 + random.int(1_000)
  const instance = random.pick(instances)
  const delayMs = 5 + random.int(150)
  const [, name, run] = random.pickWeighted<[number, string, () => Promise<unknown>]>([
    [1, `kill ${instance.name}`, () => instance.restart("SIGKILL")],
    [1, `stop ${instance.name}`, () => instance.restart("SIGTERM")],
    [
      1,
      "restart both instances",
      async () => {
        for (const { restart } of instances) await restart("SIGTERM")
      }
    ],
    [2, "restart PgBouncer", restartPooler],
    [2, `close the feed of ${instance.name}`, () => Effect.runPromise(instance.feed.cut)],
    [1, `silence the feed of ${instance.name}`, () => Effect.runPromise(instance.feed.silence)],
    [
      2,
      `delay reads by ${delayMs} ms`,
      async () => {
        for (const { reads } of instances) reads.delay(delayMs)
      }
    ]
  ])
  return { pauseMs, name, run }
}

export const generateHistory = (stage: Stage, seed: number): History => {
  const random = makeRandom(seed)
  const world = makeWorld()
  const { create, changeEverything, makeRandomChange } = makeChanges(stage.sql, world)
  const steps = Array.from({ length: stepCount }, (_, number) => ({
    pauseMs: random.int(maxPauseMs),
    change: makeRandomChange(random, `step ${number}`),
    isRolledBack: random.chance(0.08)
  }))
  return {
    seed,
    world,
    steps: [
      { pauseMs: 0, change: create },
      ...steps,
      // No later change removes a wrong entry that a cache stores during the last two steps. The pause before the last
      // step is long enough for the caches to fill and for slow reads to be in flight. In every second history, no change
      // feed receives the last change.
      { pauseMs: 50, change: changeEverything("ending 0") },
      { pauseMs: 1_300, change: changeEverything("ending 1"), cutsFeeds: seed % 2 === 0 }
    ],
    disturbances: Array.from({ length: 1 + random.int(maxDisturbances) }, () =>
      makeDisturbance(random, stage)
    )
  }
}
