import { describe, expect, it } from "vitest"
import { runReplicaModel } from "../../../../support/database/replicaModel.ts"

const steps = 600

describe("ReadRouter", () => {
  it("never returns a state that is older than what was reported or shown before, and finds what exists", {
    timeout: 180_000
  }, async () => {
    const sum = { replica: 0, primary: 0, fenced: 0, repeated: 0 }
    for (let seed = 1; seed <= 500; seed++) {
      const { problems, counts } = await runReplicaModel(seed, steps)
      expect(problems, `seed ${seed}`).toEqual([])
      for (const name of ["replica", "primary", "fenced", "repeated"] as const) sum[name] += counts[name]
    }
    // Reads of every kind happened.
    for (const count of Object.values(sum)) expect(count).toBeGreaterThan(200)
  })
})
