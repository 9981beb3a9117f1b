import { beforeAll, describe, expect, it } from "vitest"
import { type FetchInit, PromptClient } from "../../../client/src/index.ts"
import { sample } from "../../support/archives.ts"
import { balanceInstances } from "../../support/database/failover.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { startNginx, startVarnish } from "../../support/programs/edge.ts"
import { runService, type Service, startService, unlimited } from "../../support/services/startService.ts"

const { archive, keys } = sample()
const prompts = archive.prompts.filter(({ is_archived }) => !is_archived).map(({ id }) => id)
const editPrompt = "update prompts set current_content = $2 where id = $1"

describe("live prompts behind a proxy", () => {
  const database = makeTestDatabase([archive])
  const env = { ...database.env, ...unlimited }
  const start = runService(() => startService(env))
  let services: ReadonlyArray<Service>
  let proxies: Readonly<Record<string, string>>

  beforeAll(async () => {
    services = [await database.acquire(start), await database.acquire(start)]
    const toUrl = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}`
    proxies = {
      nginx: toUrl(await database.acquire(startNginx(services[0]!))),
      Varnish: toUrl(await database.acquire(startVarnish(services[0]!))),
      HAProxy: (await database.acquire(balanceInstances(services))).url
    }
  })

  it.each(["nginx", "Varnish", "HAProxy"])(
    "through %s, an edit reaches a client's live prompts after waits that ended without a change",
    async (name) => {
      const requests: Array<{ readonly path: string; applied?: string | null }> = []
      const client = new PromptClient({
        apiKey: keys.active.plaintext,
        baseUrl: proxies[name]!,
        // A request waits for five sixths of this time, in whole seconds.
        cache: { ttl: 1_200 },
        fetch: async (url: string, init: FetchInit) => {
          const request: (typeof requests)[number] = { path: new URL(url).pathname }
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
      const read = (id: string) => client.prompts.getResolved(id)
      for (const id of prompts) expect((await read(id)).source).not.toBe("fresh")

      const text = `Edited behind ${name}`
      await database.sql(editPrompt, [prompts[0], text])
      await expect.poll(async () => (await read(prompts[0]!)).data.resolved_content).toMatch(text)
      expect((await read(prompts[0]!)).source).toMatch(/^(live|cached)$/)
      // The client sends one request at the start, one per second, and a few requests after the edit.
      expect(requests.length).toBeLessThan((performance.now() - startedAt) / 1_000 + 5)
      expect(new Set(requests.map(({ path }) => path))).toEqual(new Set(["/api/v1/resolved"]))
    }
  )
})
