import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type FetchInit, PromptClient } from "../../../client/src/index.ts"
import { sample } from "../../support/archives.ts"
import { makeResources } from "../../support/database.ts"
import { balanceInstances } from "../../support/database/failover.ts"
import { startNginx, startVarnish } from "../../support/programs/edge.ts"
import { type Service, startService, unlimited } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

const { archive, keys } = sample()
const prompt = archive.prompts[0]!.id

describe("live prompts behind a proxy", () => {
  const database = makeTestDatabase([archive])
  const env = { ...database.env, ...unlimited }
  const resources = makeResources()
  let services: [Service, Service]
  let proxies: Readonly<Record<string, string>>

  beforeAll(async () => {
    services = await Promise.all([startService(env), startService(env)])
    const toUrl = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}`
    proxies = {
      nginx: toUrl(await resources.acquire(startNginx(services[0]))),
      Varnish: toUrl(await resources.acquire(startVarnish(services[0]))),
      HAProxy: (await resources.acquire(balanceInstances(services))).url
    }
  })
  afterAll(async () => {
    await Promise.all((services ?? []).map((service) => service.stop()))
    await resources.release()
  })

  it.each(["nginx", "Varnish", "HAProxy"])(
    "an edit reaches the memory of a client through %s, after requests that waited until their end",
    async (name) => {
      const requests: Array<{ readonly url: string; applied?: string | null }> = []
      const client = new PromptClient({
        apiKey: keys.active.plaintext,
        baseUrl: proxies[name]!,
        // A request waits for one second.
        cache: { ttl: 1_200 },
        fetch: async (url: string, init: FetchInit) => {
          const request: (typeof requests)[number] = { url }
          requests.push(request)
          const response = await fetch(url, init)
          request.applied = response.headers.get("preference-applied")
          return response
        }
      })
      await using _ = await client.live({})
      const startedAt = performance.now()
      const countWaits = () => requests.filter(({ applied }) => applied === "wait=1").length
      await expect.poll(countWaits).toBeGreaterThanOrEqual(2)

      await database.sql("update prompts set current_content = $2 where id = $1", [
        prompt,
        `Edited behind ${name}`
      ])
      const read = () => client.prompts.getResolved(prompt)
      await expect.poll(async () => (await read()).data.resolved_content).toMatch(`Edited behind ${name}`)
      expect((await read()).source).toMatch(/^(live|cached)$/)
      // One request for the first texts, one per second, and a few for the edit. None was for a single prompt.
      expect(requests.length).toBeLessThan((performance.now() - startedAt) / 1_000 + 5)
      expect(requests.filter(({ url }) => !new URL(url).pathname.endsWith("/resolved"))).toEqual([])
    }
  )
})
