import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeResources } from "../../support/database.ts"
import { generateHistory } from "../../support/oracle/History.ts"
import { report } from "../../support/oracle/Report.ts"
import { runHistory } from "../../support/oracle/Run.ts"
import { type Stage, type StageOptions, startServer, startStage } from "../../support/oracle/Stage.ts"

const seeds = Array.from({ length: 6 }, (_, index) => index + 1)

/** The configurations under test. Each configuration runs a third of the seeds. */
const stages: ReadonlyArray<StageOptions> = [
  { poolMode: "transaction", outageMaxAge: "0 seconds" },
  { poolMode: "session", outageMaxAge: "0 seconds" },
  { poolMode: "transaction", outageMaxAge: "300 seconds" }
]

describe("the freshness oracle", { timeout: 900_000 }, () => {
  const resources = makeResources()
  const started = new Map<StageOptions, Stage>()

  beforeAll(async () => {
    const serverUrl = await resources.acquire(startServer)
    for (const options of stages)
      started.set(options, await resources.acquire(startStage(serverUrl, options)))
  }, 300_000)
  afterAll(() => resources.release())

  it.concurrent.each(stages)(
    "the freshness oracle finds no violation with PgBouncer in $poolMode mode and OUTAGE_MAX_AGE=$outageMaxAge",
    async (options) => {
      for (const seed of seeds.filter((seed) => seed % stages.length === stages.indexOf(options))) {
        const result = await runHistory(started.get(options)!, generateHistory(seed))
        expect(report(result)).toBe("")
      }
    }
  )
})
