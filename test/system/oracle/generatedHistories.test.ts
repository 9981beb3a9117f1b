import { beforeAll, describe, expect, it } from "vitest"
import { report } from "../../../bench/oracle/Report.ts"
import { runHistory } from "../../../bench/oracle/Run.ts"
import { type Stage, type StageOptions, startStage } from "../../../bench/oracle/Stage.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"

/**
 * The configurations under test, each with an odd and an even seed. The histories of these seeds contain every kind of
 * disturbance, and slow reads in each configuration.
 */
const stages: ReadonlyArray<StageOptions & { readonly seeds: ReadonlyArray<number> }> = [
  { poolMode: "transaction", outageMaxAge: "0 seconds", seeds: [19, 42] },
  { poolMode: "session", outageMaxAge: "0 seconds", seeds: [28, 33] },
  { poolMode: "transaction", outageMaxAge: "300 seconds", seeds: [7, 14] }
]

describe("the freshness oracle", { timeout: 900_000 }, () => {
  const acquire = makeAcquire()
  const started = new Map<StageOptions, Stage>()

  beforeAll(async () => {
    for (const options of stages) started.set(options, await acquire(startStage(options)))
  }, 300_000)

  it.concurrent.each(stages)(
    "the freshness oracle finds no violation with PgBouncer in $poolMode mode and OUTAGE_MAX_AGE=$outageMaxAge",
    async (options) => {
      let isOutageSeen = false
      for (const seed of options.seeds) {
        const result = await runHistory(started.get(options)!, seed)
        expect(report(result)).toBe("")
        isOutageSeen ||= result.observations.some(({ ageMs }) => ageMs > 0)
      }
      expect(isOutageSeen).toBe(options.outageMaxAge !== "0 seconds")
    }
  )
})
