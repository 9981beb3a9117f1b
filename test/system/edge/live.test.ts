import { beforeAll, describe, expect, it } from "vitest"
import { type FetchInit, type Live, PromptClient } from "../../../client/src/index.ts"
import { sample } from "../../support/archives.ts"
import { balanceInstances } from "../../support/database/failover.ts"
import { startNginx, startVarnish } from "../../support/programs/edge.ts"
import { runService, type Service, startService, unlimited } from "../../support/service.ts"
import { makeAcquire, makeTestDatabase } from "../../support/testDatabase.ts"

const { archive, keys } = sample()
const prompts = archive.prompts.filter(({ is_archived }) => !is_archived).map(({ id }) => id)
const editPrompt = "update prompts set current_content = $2 where id = $1"

describe("live prompts behind a proxy", () => {
  const database = makeTestDatabase([archive])
  const env = { ...database.env, ...unlimited }
  const acquire = makeAcquire()
  const start = runService(() => startService(env))
  let services: ReadonlyArray<Service>
  let proxies: Readonly<Record<string, string>>

  beforeAll(async () => {
    services = [await acquire(start), await acquire(start)]
    const toUrl = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}`
    proxies = {
      nginx: toUrl(await acquire(startNginx(services[0]!))),
      Varnish: toUrl(await acquire(startVarnish(services[0]!))),
      HAProxy: (await acquire(balanceInstances(services))).url
    }
  })

  /** Connects a client whose live prompts are all prompts. A request waits for five sixths of `ttl`, in whole seconds. */
  const connect = async (baseUrl: string, ttl: number) => {
    const requests: Array<{ readonly url: string; applied?: string | null }> = []
    const client = new PromptClient({
      apiKey: keys.active.plaintext,
      baseUrl,
      cache: { ttl },
      fetch: async (url: string, init: FetchInit) => {
        const request: (typeof requests)[number] = { url }
        requests.push(request)
        const response = await fetch(url, init)
        request.applied = response.headers.get("preference-applied")
        return response
      }
    })
    /** Returns the texts in memory, by the ids of the prompts. */
    const readTexts = async () => {
      const results = await Promise.all(prompts.map((id) => client.prompts.getResolved(id)))
      return Object.fromEntries(
        results.flatMap(({ data, source }) => (source === "fresh" ? [] : [[data.id, data.resolved_content]]))
      )
    }
    return { client, requests, readTexts, live: await client.live({}) }
  }

  it.each(["nginx", "Varnish", "HAProxy"])(
    "an edit reaches the memory of a client through %s, after requests that waited until their end",
    async (name) => {
      const { client, requests, readTexts, live } = await connect(proxies[name]!, 1_200)
      await using _: Live = live
      const startedAt = performance.now()
      const countWaits = () => requests.filter(({ applied }) => applied === "wait=1").length
      await expect.poll(countWaits).toBeGreaterThanOrEqual(2)
      expect(Object.keys(await readTexts())).toHaveLength(prompts.length)

      await database.sql(editPrompt, [prompts[0], `Edited behind ${name}`])
      const read = async () => (await readTexts())[prompts[0]!]
      await expect.poll(read).toMatch(`Edited behind ${name}`)
      expect((await client.prompts.getResolved(prompts[0]!)).source).toMatch(/^(live|cached)$/)
      // One request for the first texts, one per second, and a few for the edit. None was for a single prompt.
      expect(requests.length).toBeLessThan((performance.now() - startedAt) / 1_000 + 5)
      expect(requests.filter(({ url }) => !new URL(url).pathname.endsWith("/resolved"))).toEqual([])
    }
  )
})
