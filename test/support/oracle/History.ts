import { makeRandom } from "../random.ts"
import { type Change, changeEverything, makeChange } from "./Changes.ts"
import { type Disturbance, makeDisturbance } from "./Disturbances.ts"
import { makeWorld, type Random, type World } from "./World.ts"

/** One transaction of the writer, and the pause before it. */
export interface Step {
  readonly pauseMs: number
  readonly change: Change
  readonly end: "commit" | "rollback"
  /** True if the change feeds of all instances are cut off while the transaction commits. */
  readonly cutsFeeds: boolean
}

/** The changes of the database and the disturbances. The seed determines them, but not their interleaving. */
export interface History {
  readonly seed: number
  readonly world: World
  readonly steps: ReadonlyArray<Step>
  /** The disturbances happen one after another, while the steps run. */
  readonly disturbances: ReadonlyArray<Disturbance>
}

const stepCount = 40
const maxPauseMs = 120
const maxDisturbances = 3

/**
 * Returns the last two steps of a history. No later change removes a wrong entry that a cache stores during these
 * steps. The pause before the last step is long enough for the caches to fill and for slow reads to be in flight. If
 * `cutsFeeds` is true, no change feed receives the last change.
 */
const makeEnding = (world: World, cutsFeeds: boolean): ReadonlyArray<Step> =>
  [50, 1_300].map((pauseMs, number) => ({
    pauseMs,
    change: changeEverything(world, `ending ${number}`),
    end: "commit",
    cutsFeeds: cutsFeeds && number === 1
  }))

const makeStep = (random: Random, world: World, number: number): Step => ({
  pauseMs: random.int(maxPauseMs),
  change: makeChange(random, world, `step ${number}`),
  end: random.chance(0.08) ? "rollback" : "commit",
  cutsFeeds: false
})

export const generateHistory = (seed: number): History => {
  const random = makeRandom(seed)
  const world = makeWorld(random)
  const steps = Array.from({ length: stepCount }, (_, number) => makeStep(random, world, number))
  return {
    seed,
    world,
    steps: [...steps, ...makeEnding(world, seed % 2 === 0)],
    disturbances: Array.from({ length: 1 + random.int(maxDisturbances) }, () => makeDisturbance(random))
  }
}
