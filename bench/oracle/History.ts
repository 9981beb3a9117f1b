import * as Effect from "effect/Effect"
import { type Change, makeChanges, makeWorld } from "./Changes.ts"
import { makeRandom, type Random } from "./Random.ts"
import type { Stage } from "./Stage.ts"

/** A change and the pause before it. */
export interface Step extends Change {
  readonly pauseMs: number
  /** True if the change feeds of all instances are cut off while the transaction commits. */
  readonly cutsFeeds?: boolean
  /** How long all instances are cut off from PostgreSQL after the transaction, in milliseconds. */
  readonly outageMs?: number
}

const stepCount = 40
const maxPauseMs = 120
const maxDisturbances = 3

/** Makes a disturbance of the processes or their connections. `run` resolves once the processes run again. */
const makeDisturbance = (random: Random, { instances, restartPooler }: Stage) => {
  const pauseMs = 200 + random.int(1_000)
  const { name, restart, feed } = random.pick(instances)
  const delayMs = 5 + random.int(150)
  const [description, run] = random.pick<readonly [string, () => Promise<unknown>]>([
    [`kill ${name}`, () => restart("SIGKILL")],
    [`stop ${name}`, () => restart("SIGTERM")],
    ["restart PgBouncer", restartPooler],
    [`close the feed of ${name}`, () => Effect.runPromise(feed.cut)],
    [`silence the feed of ${name}`, () => Effect.runPromise(feed.silence)],
    [`delay reads by ${delayMs} ms`, async () => instances.map(({ reads }) => reads.delay(delayMs))]
  ])
  return { pauseMs, name: description, run }
}

/**
 * Returns the changes to the database and the disturbances of a history. The seed determines the changes and
 * disturbances, but not their interleaving. The first step creates the world. The disturbances happen one after another,
 * while the steps run.
 */
export const generateHistory = (stage: Stage, seed: number) => {
  const random = makeRandom(seed)
  const world = makeWorld()
  const { changeEverything, makeRandomChange } = makeChanges(stage.sql, world)
  const steps: ReadonlyArray<Step> = [
    { pauseMs: 0, ...changeEverything("start") },
    ...Array.from({ length: stepCount }, (_, number) => ({
      pauseMs: random.int(maxPauseMs),
      ...makeRandomChange(random, `step ${number}`)
    })),
    // No change follows the last two steps, so the final reads find a wrong entry that a cache stores during these
    // steps. The pause before the last step is long enough for the caches to fill and for slow reads to be in flight. In
    // every second history, no change feed receives the last change. In every fourth history, the last change happens
    // during an outage.
    { pauseMs: 50, ...changeEverything("ending 0") },
    {
      pauseMs: 1_300,
      ...changeEverything("ending 1"),
      cutsFeeds: seed % 2 === 0,
      outageMs: seed % 4 === 2 ? 2_000 : 0
    }
  ]
  return {
    world,
    steps,
    disturbances: Array.from({ length: 1 + random.int(maxDisturbances) }, () =>
      makeDisturbance(random, stage)
    )
  }
}
