import { beforeAll, expect, it } from "vitest"
import { makeAcquire } from "../../support/testDatabase.ts"
import { kinds, measureNeighbors, type Tenants, twoTenants } from "../../support/neighbors.ts"

const maxResidentMiB = 400

const acquire = makeAcquire()
let tenants: Tenants
beforeAll(async () => {
  tenants = await acquire(twoTenants)
})

// A read that waits for longer than its deadline gets 503. `bench/neighbors.ts` measures the delay, and checks that no
// outage is reported: on a busy machine, a pause of the process is one.
it.each(kinds)(
  "90 concurrent requests of one tenant for the largest values make no read of another tenant fail: $name",
  async (kind) => {
    const { meanwhile, large, afterwards, peak } = await measureNeighbors(tenants, kind)
    expect(meanwhile.statuses).toEqual({ 200: meanwhile.cached.length + meanwhile.uncached.length })
    const [success, others] = kind.name.includes("too large") ? ["422", []] : ["200", ["503"]]
    // How many of the concurrent requests succeed within their deadline depends on the machine.
    expect(large[success]).toBeGreaterThan(0)
    expect([success, ...others]).toEqual(expect.arrayContaining(Object.keys(large)))
    expect(afterwards).toEqual({ [success]: 2 })
    expect(peak).toBeLessThan(maxResidentMiB)
  }
)
