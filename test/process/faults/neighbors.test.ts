import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeResources } from "../../support/database.ts"
import { quantile } from "../../support/freshness.ts"
import {
  type Kind,
  kinds,
  measureNeighbors,
  type Neighbors,
  type Tenants,
  twoTenants
} from "../../support/neighbors.ts"
import { waitUntilOk } from "../../support/requests.ts"

/**
 * The greatest allowed ratio of the small reads' median latency during the burst to that before it. A busy machine
 * stays far below it; small reads that queue behind large ones reach a hundred.
 */
const maxRatio = 30

const computeRatio = ({ alone, meanwhile }: Neighbors): number =>
  quantile(meanwhile, 0.5) / quantile(alone, 0.5)

describe("a tenant with large prompts", () => {
  const resources = makeResources()
  let tenants: Tenants

  beforeAll(async () => {
    tenants = await resources.acquire(twoTenants)
  })
  afterAll(() => resources.release())

  const findKind = (name: string): Kind => kinds.find((kind) => kind.name === name)!

  it("90 concurrent reads of 8 MiB prompts neither slow nor fail another tenant's small reads", async () => {
    const neighbors = await measureNeighbors(tenants, findKind("content of 8 MiB"))
    const { small, large } = neighbors
    expect(small).toEqual({ 200: expect.any(Number) })
    expect(computeRatio(neighbors)).toBeLessThan(maxRatio)
    expect(Object.keys(large).filter((status) => status !== "200" && status !== "503")).toEqual([])
    const [row] = await tenants.sql("select id from prompts where workspace_id = $1 limit 1", [
      tenants.large.workspace
    ])
    const path = `/api/v1/prompts/${(row as { readonly id: string }).id}`
    await waitUntilOk(tenants.service, path, `Bearer ${tenants.large.key.plaintext}`, 20_000)
  }, 120_000)

  it.each(["30 MiB of fragments, too large", "16 MiB and fragments, too large"])(
    "90 concurrent reads of prompts that are certainly too large get 422 without loading their texts: %s",
    async (name) => {
      const neighbors = await measureNeighbors(tenants, findKind(name))
      const { small, large, growth } = neighbors
      expect(small).toEqual({ 200: expect.any(Number) })
      expect(large).toEqual({ 422: 90 })
      expect(computeRatio(neighbors)).toBeLessThan(maxRatio)
      expect(growth).toBeLessThan(64)
    },
    120_000
  )
})
