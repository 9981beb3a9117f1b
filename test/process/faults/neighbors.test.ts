import { setTimeout } from "node:timers/promises"
import { beforeAll, expect, it } from "vitest"
import { readMemoryMiB } from "../../../bench/command.ts"
import { burstSize, kinds, type Neighbors, runNeighbors } from "../../../bench/neighbors/tenants.ts"
import { send, uncachedPath } from "../../support/clients/requests.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"

const maxResidentMiB = 400

const acquire = makeAcquire()
let neighbors: Neighbors
beforeAll(async () => {
  neighbors = await acquire(runNeighbors)
})

// A read that exceeds its deadline would get 503. `bench/neighbors.ts` measures the delay. Only this benchmark also
// expects a log without outages, because on a busy machine the service logs a pause of its process as an outage.
it.each(kinds)(
  "no read of a tenant fails while another tenant sends 90 concurrent requests for the largest values: $name",
  async (kind) => {
    const { service, small, fill } = neighbors
    const sendLarge = await fill(kind)
    let isRunning = true
    const large = sendLarge(burstSize).finally(() => (isRunning = false))
    const reads: Array<ReturnType<typeof send>> = []
    while (isRunning) {
      for (const path of [small.path, uncachedPath(small.path)])
        reads.push(send(service, path, `Bearer ${small.key}`))
      await setTimeout(10)
    }
    expect(new Set((await Promise.all(reads)).map(({ status }) => status))).toEqual(new Set([200]))
    const [success, others] = kind.name.includes("too large") ? ["422", []] : ["200", ["503"]]
    const statuses = await large
    // How many of the concurrent requests succeed within their deadline depends on the machine.
    expect(statuses[success]).toBeGreaterThan(0)
    expect([success, ...others]).toEqual(expect.arrayContaining(Object.keys(statuses)))
    expect(await sendLarge(2)).toEqual({ [success]: 2 })
    expect(readMemoryMiB(service.process.pid!, "VmHWM")).toBeLessThan(maxResidentMiB)
  }
)
