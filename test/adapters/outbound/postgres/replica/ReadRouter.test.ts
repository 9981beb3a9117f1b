import { describe, expect, it } from "vitest"
import { runReplicaModel } from "../../../../support/database/replicaModel.ts"

const steps = 600

describe("ReadRouter", () => {
  it("ReadRouter returns no state that is older than a change that the feed has reported or a read has returned, and finds every existing row", {
    timeout: 180_000
  }, async () => {
    const sum = { replica: 0, primary: 0, fenced: 0, repeated: 0 }
    for (let seed = 1; seed <= 500; seed++) {
      const { problems, counts } = await runReplicaModel(seed, steps)
      expect(problems, `seed ${seed}`).toEqual([])
      for (const name of ["replica", "primary", "fenced", "repeated"] as const) sum[name] += counts[name]
    }
    // Every kind of read occurred often.
    for (const count of Object.values(sum)) expect(count).toBeGreaterThan(200)
  })
})
