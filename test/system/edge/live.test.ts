import { setTimeout } from "node:timers/promises"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { type FetchInit, type Live, PromptClient } from "../../../client/src/index.ts"
import { sample } from "../../support/archives.ts"
import { makeResources } from "../../support/database.ts"
import { balanceInstances } from "../../support/database/failover.ts"
import { startNginx, startVarnish } from "../../support/programs/edge.ts"
import { makeRandom } from "../../support/random.ts"
import { type Service, startService, unlimited } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

const { archive, keys } = sample()
const prompts = archive.prompts.filter(({ is_archived }) => !is_archived).map(({ id }) => id)
const editPrompt = "update prompts set current_content = $2 where id = $1"
const editFragment = "update fragments set content = $2 where id = $1"

describe("live prompts behind a proxy", () => {
  const database = makeTestDatabase([archive])
  const env = { ...database.env, ...unlimited, SHUTDOWN_GRACE: "3 seconds" }
  const resources = makeResources()
  let services: [Service, Service]
  let proxies: Readonly<Record<string, string>>

  beforeAll(async () => {
    services = await Promise.all([startService(env), startService(env)])
    const toUrl = ({ port }: { readonly port: number }) => `http://127.0.0.1:${port}`
    proxies = {
      nginx: toUrl(await resources.acquire(startNginx(services[0]))),
      "nginx without Prefer": toUrl(
        await resources.acquire(
          startNginx(services[0], { 'Connection "";': 'Connection ""; proxy_set_header Prefer "";' })
        )
      ),
      Varnish: toUrl(await resources.acquire(startVarnish(services[0]))),
      HAProxy: (await resources.acquire(balanceInstances(services))).url
    }
  })
  afterAll(async () => {
    await Promise.all((services ?? []).map((service) => service.stop()))
    await resources.release()
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

  it("behind a proxy that removes Prefer, a client sends one request per ttl, and notices an edit", async () => {
    const { requests, readTexts, live } = await connect(proxies["nginx without Prefer"]!, 1_200)
    await using _: Live = live
    const startedAt = performance.now()
    await expect.poll(() => requests.length).toBeGreaterThanOrEqual(4)
    await database.sql(editPrompt, [prompts[0], "Edited without Prefer"])
    const read = async () => (await readTexts())[prompts[0]!]
    await expect.poll(read).toMatch("Edited without Prefer")
    // Besides one request per `ttl`: one for the first texts, one that finds that the proxy does not wait, and one after
    // each of the two changes. The cache of the proxy may have contained older texts.
    expect(requests.length).toBeLessThanOrEqual((performance.now() - startedAt) / 1_200 + 6)
    expect(requests.filter(({ applied }) => applied != null)).toEqual([])
  })

  it("the last texts are in the memory of every client after random edits, while each of two instances behind HAProxy stops or is killed and starts again", async () => {
    const seed = Date.now()
    const random = makeRandom(seed)
    const clients = await Promise.all(Array.from({ length: 10 }, () => connect(proxies.HAProxy!, 2_400)))
    const countRequests = () => clients.map(({ requests }) => requests.length)
    const startedAt = performance.now()
    let edits = 0
    let isEditing = true
    const edit = async () => {
      while (isEditing) {
        const [statement, id] = random.chance(0.7)
          ? [editPrompt, random.pick(prompts)]
          : [editFragment, random.pick(archive.fragments).id]
        await database.sql(statement, [id, `Edit ${++edits}`])
        await setTimeout(random.int(150))
      }
    }
    const editing = edit()
    for (const [index, signal] of [
      [0, "SIGTERM"],
      [1, "SIGKILL"]
    ] as const) {
      await setTimeout(random.int(1_000))
      services[index].process.kill(signal)
      await services[index].stop()
      services[index] = await startService({ ...env, PORT: String(services[index].port) })
      // HAProxy checks the instance once per second, so it needs this time to use the new instance.
      await setTimeout(1_500)
    }
    isEditing = false
    await editing

    const direct = new PromptClient({ apiKey: keys.active.plaintext, baseUrl: services[0].url })
    const current = Object.fromEntries(
      (await Promise.all(prompts.map((id) => direct.prompts.getResolved(id)))).map(({ data }) => [
        data.id,
        data.resolved_content
      ])
    )
    for (const { readTexts } of clients)
      await expect.poll(readTexts, { message: `seed ${seed}`, timeout: 20_000 }).toEqual(current)
    // An edit causes at most two requests of a client, even if one instance learns of it later than the other.
    const seconds = (performance.now() - startedAt) / 1_000
    for (const count of countRequests()) expect(count, `seed ${seed}`).toBeLessThan(2 * edits + seconds + 10)

    const before = countRequests()
    await setTimeout(6_000)
    const sent = countRequests().map((count, index) => count - before[index]!)
    // Without edits, a client sends one request in 2 s.
    for (const count of sent) expect(count, `seed ${seed}`).toBeLessThanOrEqual(4)
    for (const { live } of clients) live.close()
  }, 120_000)
})
