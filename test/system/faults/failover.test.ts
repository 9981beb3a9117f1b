import { setTimeout } from "node:timers/promises"
import { afterEach, describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { connectTo, makeResources } from "../../support/database.ts"
import {
  balanceInstances,
  balanceServers,
  type Pair,
  promote,
  startPair
} from "../../support/database/failover.ts"
import { startLoad } from "../../support/clients/load.ts"
import type { Reply } from "../../support/clients/read.ts"
import { send, uncachedPath } from "../../support/clients/requests.ts"
import { type Service, startService, unlimited } from "../../support/service.ts"

/**
 * The longest time until an edit is visible, in milliseconds. It is measured from the promotion of the standby or,
 * behind HAProxy, from the switch of HAProxy.
 */
const visibilityMs = 5_000
/** The options of `expect.poll`. The timeout is longer than any event takes on a busy machine. */
const pollOptions = { timeout: 20_000, interval: 20 }

const settings = {
  // With a longer time, the service would return outdated responses in an outage. These tests must find no outdated
  // response.
  OUTAGE_MAX_AGE: "0 seconds",
  ...unlimited
}

/** A service and its two PostgreSQL servers, of which the standby is promoted. */
interface Setting {
  readonly pair: Pair
  readonly service: Service
}

/** How a primary fails: its connections end, or it stops responding. */
const failures: ReadonlyArray<readonly [name: string, fail: (pair: Pair) => Promise<void>]> = [
  ["killed", ({ primary }) => primary.kill()],
  ["silent", async ({ primary }) => primary.freeze()]
]

describe("a service whose PostgreSQL primary fails over", () => {
  let resources = makeResources()
  let services: Array<Service> = []
  afterEach(async () => {
    await Promise.all(services.map((service) => service.stop()))
    services = []
    await resources.release()
    resources = makeResources()
  })

  const { archive, keys } = sample()
  const prompt = archive.prompts[0]!.id
  const item = `/api/v1/prompts/${prompt}`
  const authorization = `Bearer ${keys.active.plaintext}`
  const setTitle = "update prompts set title = $1 where id = $2"

  const serve = async (url: string): Promise<Service> => {
    const service = await startService({ ...settings, DATABASE_URL: url })
    services.push(service)
    return service
  }
  const readTitle = async (service: Service, path = item): Promise<string | undefined> => {
    const { status, body } = await send(service, path, authorization)
    return status === 200 ? JSON.parse(body).data.title : undefined
  }
  const start = async (): Promise<Setting> => {
    const pair = await resources.acquire(startPair(archive))
    const service = await serve(pair.url)
    for (let i = 0; i < 2; i++) expect(await readTitle(service)).toBe(archive.prompts[0]!.title)
    expect(await send(service, item, `Bearer ${keys.second.plaintext}`)).toMatchObject({ status: 200 })
    return { pair, service }
  }

  /** Edits the prompt, and waits until the service shows the edit. */
  const edit = async ({ pair, service }: Setting, title: string): Promise<void> => {
    await pair.sql(setTitle, [title, prompt])
    await expect.poll(() => readTitle(service), pollOptions).toBe(title)
  }

  /** Expects the service to show the state of the promoted server from now on. */
  const expectFresh = async (setting: Setting) => {
    const { service, pair } = setting
    for (let round = 0; round < 5; round++) {
      const title = `Round ${round}`
      await edit(setting, title)
      // Any outdated server or cache would show an earlier title in one of these reads.
      const titles = await Promise.all(Array.from({ length: 20 }, () => readTitle(service)))
      expect(new Set(titles)).toEqual(new Set([title]))
      expect(await pair.sql("select title from prompts where id = $1", [prompt])).toEqual([{ title }])
    }
    expect((await send(service, uncachedPath("/api/v1/prompts?per_page=1"), authorization)).status).toBe(200)
    await pair.sql("update api_keys set revoked_at = now() where id = $1", [keys.second.stored.id])
    await expect
      .poll(async () => (await send(service, item, `Bearer ${keys.second.plaintext}`)).status, pollOptions)
      .toBe(401)
  }

  it.each(failures)(
    "when the primary is %s, an edit on the promoted standby is visible within 5 s, and no later read returns an older state",
    async (_, fail) => {
      const setting = await start()
      await fail(setting.pair)
      await promote(setting.pair)
      const startedAt = performance.now()
      await edit(setting, "After the promotion")
      expect(performance.now() - startedAt).toBeLessThan(visibilityMs)
      await expectFresh(setting)
    }
  )

  it("if the old primary, which is the first host, returns and accepts writes, neither running nor new processes use it", async () => {
    const setting = await start()
    const { pair, service } = setting
    await pair.primary.kill()
    await promote(pair)
    await edit(setting, "Promoted")

    await pair.primary.start()
    const stray = await resources.acquire(connectTo({ DATABASE_URL: pair.primary.url }))
    await stray.sql(setTitle, ["Stray", prompt])
    // Closes the connections of the service, so that every connection is opened again.
    await pair.sql(
      "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'prompt-retrieval' and pid <> pg_backend_pid()"
    )
    const started = await serve(pair.url)
    for (const each of [service, started])
      await expect.poll(() => readTitle(each), pollOptions).toBe("Promoted")
    for (const each of [service, started]) {
      await expectFresh({ ...setting, service: each })
      await pair.sql("update api_keys set revoked_at = null where id = $1", [keys.second.stored.id])
    }

    await pair.standby.stop()
    // Only the old primary is left. Its timeline is older, so the service must not use it.
    const isRejected = () => service.output().includes("its timeline 1 is older than 2")
    await expect
      .poll(
        async () => [
          (await send(service, uncachedPath("/api/v1/prompts?per_page=1"), authorization)).status,
          isRejected()
        ],
        pollOptions
      )
      .toEqual([503, true])
    expect(await readTitle(service)).toBeUndefined()
  })

  describe("a service whose PostgreSQL is behind HAProxy in TCP mode", () => {
    const startBehindHaproxy = async () => {
      const pair = await resources.acquire(startPair(archive))
      const haproxy = await resources.acquire(balanceServers(pair))
      const service = await serve(haproxy.url)
      for (let i = 0; i < 2; i++) expect(await readTitle(service)).toBe(archive.prompts[0]!.title)
      return { setting: { pair, service }, haproxy }
    }

    it.each(failures)(
      "behind HAProxy, when the primary is %s, an edit on the promoted standby is visible within 5 s and stays visible",
      async (_, fail) => {
        const { setting, haproxy } = await startBehindHaproxy()
        await fail(setting.pair)
        await promote(setting.pair)
        const startedAt = performance.now()
        await haproxy.switchOver()
        await haproxy.closeOldSessions()
        await edit(setting, "After the promotion")
        expect(performance.now() - startedAt).toBeLessThan(visibilityMs)
        await expectFresh(setting)
      }
    )

    it("instances that restart one after another during a failover respond to every request with 200, or with 503 and Retry-After", async () => {
      const pair = await resources.acquire(startPair(archive))
      const env = {
        DATABASE_URL: pair.url,
        ...unlimited,
        SHUTDOWN_GRACE: "3 seconds"
      }
      const instances = [await startService(env), await startService(env)]
      services.push(...instances)
      const { url } = await resources.acquire(balanceInstances(instances))
      const paths = ["/api/v1/prompts", `${item}/resolved`, `${item}/versions/1`]
      const load = startLoad({
        next: (n) => ({ url: url + paths[n % paths.length]!, key: keys.active.plaintext }),
        clients: 8,
        pauseMs: 1
      })
      const waitForRequests = (count: number) => {
        const target = load.count() + count
        return expect.poll(() => load.count(), { timeout: 30_000, interval: 20 }).toBeGreaterThan(target)
      }
      // After these requests, every response is a known response in both instances.
      await waitForRequests(300)
      await pair.primary.kill()
      await waitForRequests(100)
      const promotion = setTimeout(2_000).then(() => promote(pair))
      for (const [index, instance] of instances.entries()) {
        expect(await instance.stop()).toBe(0)
        services.splice(services.indexOf(instance), 1)
        await waitForRequests(100)
        services.push(await startService({ ...env, PORT: String(instance.port) }))
        // HAProxy checks an instance once per second, so it needs this time to use the new instance.
        await setTimeout(2_500)
        await waitForRequests(index === 0 ? 100 : 300)
      }
      await promotion
      const replies = await load.stop()
      const isUnavailable = ({ status, headers }: Reply) =>
        status === 503 && headers["retry-after"] !== undefined
      const others = replies.filter((reply) => !isUnavailable(reply))
      expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]))
      expect(others.length).toBeGreaterThan(600)
    }, 120_000)
  })
})
