import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeResources, postgres } from "../support/database.ts"
import { quantile } from "../support/freshness.ts"
import {
  type Kind,
  kinds,
  measureNeighbors,
  type Neighbors,
  type Tenants,
  twoTenants
} from "../support/neighbors.ts"
import { untilAnswered } from "../support/outcomes.ts"

/**
 * How many times as long as alone half of the small reads may take. It is far above what a busy machine makes of the real
 * figure, and far below what a queue of large reads makes of it: a hundred times.
 */
const maxRatio = 30

const ratioOf = ({ alone, meanwhile }: Neighbors): number => quantile(meanwhile, 0.5) / quantile(alone, 0.5)

describe.skipIf(postgres.missing !== undefined)(
  "a tenant with large prompts that sends 90 requests at once",
  () => {
    const resources = makeResources()
    let tenants: Tenants

    beforeAll(async () => {
      tenants = await resources.acquire(twoTenants)
    })
    afterAll(() => resources.release())

    const kindOf = (name: string): Kind => kinds.find((kind) => kind.name === name)!

    it("neither holds up nor fails another tenant's small reads when its prompts have 8 MiB", async () => {
      const neighbors = await measureNeighbors(tenants, kindOf("content of 8 MiB"))
      const { small, large } = neighbors
      expect(small).toEqual({ 200: expect.any(Number) })
      expect(ratioOf(neighbors)).toBeLessThan(maxRatio)
      expect(Object.keys(large).filter((status) => status !== "200" && status !== "503")).toEqual([])
      const [row] = await tenants.sql("select id from prompts where workspace_id = $1 limit 1", [
        tenants.large.workspace
      ])
      const path = `/api/v1/prompts/${(row as { readonly id: string }).id}`
      await untilAnswered(tenants.service, path, `Bearer ${tenants.large.key.plaintext}`, 20_000)
    }, 120_000)

    it.each(["30 MiB of fragments, too large", "16 MiB and fragments, too large"])(
      "gets 500 for each, without the memory for their texts, when they are certainly too large: %s",
      async (name) => {
        const neighbors = await measureNeighbors(tenants, kindOf(name))
        const { small, large, growth } = neighbors
        expect(small).toEqual({ 200: expect.any(Number) })
        expect(large).toEqual({ 500: 90 })
        expect(ratioOf(neighbors)).toBeLessThan(maxRatio)
        expect(growth).toBeLessThan(64)
      },
      120_000
    )
  }
)
