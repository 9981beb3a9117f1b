import * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import type { Fence, Proof } from "../../../../../src/adapters/outbound/postgres/replica/Fence.ts"
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

  const skipProof = (skipped: Proof) => (fence: Fence) => {
    const { await: awaitProof } = fence
    fence.await = (proof, at) => (proof === skipped ? Effect.void : awaitProof.call(fence, proof, at))
  }
  const faults: ReadonlyArray<readonly [name: string, plantFault: (fence: Fence) => void]> = [
    [
      "runs reads before it has passed the fence",
      (fence) => {
        fence.isPassedBy = () => true
      }
    ],
    ["runs reads before what other servers showed was reported", skipProof("reported")],
    [
      "shows commits that the primary does not show yet, and reads of the primary do not wait",
      skipProof("visible")
    ]
  ]
  it.each(faults)("the model finds that a replica %s", { timeout: 60_000 }, async (_, plantFault) => {
    for (let seed = 1; seed <= 500; seed++)
      if ((await runReplicaModel(seed, steps, plantFault)).problems.length > 0) return
    expect.fail("nothing found")
  })
})
