import { join } from "node:path"
import { afterEach, describe, expect, it } from "vitest"
import { makeResources } from "../../support/database.ts"
import type { Rule } from "../../support/oracle/Checker.ts"
import { generateHistory } from "../../support/oracle/History.ts"
import { runHistory } from "../../support/oracle/Run.ts"
import { startServers } from "../../support/oracle/Servers.ts"
import { startStage } from "../../support/oracle/Stage.ts"

const programs = join(import.meta.dirname, "../../support/oracle/faults")
/** How many histories may pass before a fault is found. */
const maxHistories = 8

describe("the freshness oracle with a planted fault", { timeout: 600_000 }, () => {
  let resources = makeResources()
  afterEach(async () => {
    await resources.release()
    resources = makeResources()
  })

  /** What makes a fault show: the time that each read takes, and how far the standby is behind. */
  interface Delays {
    readonly readMs: number
    readonly standbyMs: number
  }

  /** Runs histories on a service with a fault until one violates a rule, and returns the rules that it violates. */
  const findViolations = async (
    program: string,
    firstSeed: number,
    { readMs, standbyMs }: Delays
  ): Promise<ReadonlySet<Rule>> => {
    const servers = await resources.acquire(startServers)
    const stage = await resources.acquire(
      startStage(servers, {
        poolMode: "transaction",
        outageMaxAge: "0 seconds",
        program: join(programs, program)
      })
    )
    // Every second seed has the same kind of ending.
    for (let seed = firstSeed; seed < firstSeed + 2 * maxHistories; seed += 2) {
      for (const { reads } of stage.instances) reads.delay(readMs)
      await servers.delayStandby(standbyMs)
      const history = { ...generateHistory(seed), disturbances: [] }
      const { violations } = await runHistory(stage, history, () => servers.delayStandby(0))
      if (violations.length > 0) return new Set(violations.map(({ rule }) => rule))
    }
    return new Set()
  }

  it("finds that caches take the revision after the query", async () => {
    const rules = await findViolations("revisionAfterQuery.ts", 1, { readMs: 500, standbyMs: 10_000 })
    expect(rules).toContain("stale")
  })

  it("finds that a replica runs reads before it has passed the fence", async () => {
    const rules = await findViolations("ignoredFence.ts", 1, { readMs: 0, standbyMs: 2_700 })
    expect(rules).toContain("stale")
  })

  it("finds that a change feed that reconnects loses the changes before", async () => {
    const rules = await findViolations("lostOnReconnect.ts", 2, { readMs: 0, standbyMs: 0 })
    expect(rules).toContain("stale")
  })
})
