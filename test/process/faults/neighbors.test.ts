import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeResources } from "../../support/database.ts"
import {
  kinds,
  measureNeighbors,
  readResidentMiB,
  type Tenants,
  twoTenants
} from "../../support/neighbors.ts"

/** A generous bound, because the machine may be busy. `bench/neighbors.ts` has the strict bounds. */
const maxMs = 2_000
const maxResidentMiB = 400

describe("a tenant with the largest values that the database accepts", () => {
  const resources = makeResources()
  let tenants: Tenants

  beforeAll(async () => {
    tenants = await resources.acquire(twoTenants)
  })
  afterAll(() => resources.release())

  it.each(kinds)(
    "90 concurrent requests of one tenant neither delay the reads of another tenant nor make them fail: $name",
    async (kind) => {
      const { meanwhile, large, peak } = await measureNeighbors(tenants, kind)
      expect(meanwhile.statuses).toEqual({ 200: expect.any(Number) })
      expect(Math.max(...meanwhile.cached, ...meanwhile.uncached)).toBeLessThan(maxMs)
      expect(peak).toBeLessThan(maxResidentMiB)
      const expected = kind.name.includes("too large") ? ["422"] : ["200", "503"]
      expect(Object.keys(large).filter((status) => !expected.includes(status))).toEqual([])
      expect(tenants.service.output()).not.toMatch(/unreachable/i)
      expect(readResidentMiB(tenants.service.process.pid!)).toBeLessThan(maxResidentMiB)
    },
    120_000
  )
})
