import { once } from "node:events"
import { setTimeout } from "node:timers/promises"
import { afterAll, describe, expect, it } from "vitest"
import { key, makeTenant, prompt } from "../../support/archives.ts"
import { sendGet, sendWait, type SentRequest, summarizeWait } from "../../support/clients/waits.ts"
import { readMetric } from "../../support/services/metrics.ts"
import { type ObservedService, startObservedService } from "../../support/services/startObservedService.ts"
import { unlimited } from "../../support/service.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"

const tenant = makeTenant({ prompts: [prompt()] })
const keys = [tenant.key, ...Array.from({ length: 9 }, () => key(tenant.home.id, tenant.owner))]
const { name, env, sql } = makeTestDatabase([
  { ...tenant.archive, api_keys: keys.map(({ stored }) => stored) }
])
const target = `/api/v1/prompts/${tenant.archive.prompts[0]!.id}/resolved`

const services: Array<ObservedService> = []
afterAll(async () => {
  for (const service of services) {
    service.process.kill("SIGCONT")
    await service.stop()
  }
})
const start = async (): Promise<ObservedService> => {
  const service = await startObservedService({ ...env, ...unlimited })
  services.push(service)
  return service
}

const get = ({ port }: ObservedService) => sendGet({ port, target, key: keys[0]!.plaintext }).response

/** Sends requests that wait for a change. Resolves when all of them are held. */
const hold = async (service: ObservedService, count = 1, wait = 50): Promise<ReadonlyArray<SentRequest>> => {
  const etag = (await get(service)).headers.etag!
  const sent = Array.from({ length: count }, (_, index) =>
    sendWait({ port: service.port, target, key: keys[index % keys.length]!.plaintext, etag, wait })
  )
  await expect
    .poll(() => readMetric(service.metricsPort, "prompt_retrieval_http_requests_held"), { timeout: 10_000 })
    .toBe(count)
  return sent
}

const edit = (content: string) => sql("update prompts set current_content = $1", [content])

const released = { status: 304, applied: undefined, caching: "no-store" }

describe("a held request", { timeout: 60_000 }, () => {
  it("gets 304 without Preference-Applied on SIGTERM, together with 1,000 others, before the service stops", async () => {
    const service = await start()
    const sent = await hold(service, 1_000)
    const exited = once(service.process, "exit")
    service.process.kill("SIGTERM")
    const responses = await Promise.all(sent.map(({ response }) => response))
    expect(responses.map(summarizeWait)).toEqual(responses.map(() => released))
    expect((await exited)[0]).toBe(0)
  })

  it("gets 304 without Preference-Applied when the change feed is lost, and the next request waits once the feed is back", async () => {
    const service = await start()
    const sent = await hold(service, 50)
    await sql(`select pg_terminate_backend(pid) from pg_stat_activity
      where datname = '${name}' and query ilike 'listen%'`)
    const responses = await Promise.all(sent.map(({ response }) => response))
    expect(responses.map(summarizeWait)).toEqual(responses.map(() => released))
    await expect
      .poll(() => readMetric(service.metricsPort, "prompt_retrieval_change_feed_up"), { timeout: 15_000 })
      .toBe(1)
    const [next] = await hold(service)
    await edit("after the loss")
    const { status, body } = await next!.response
    expect([status, JSON.parse(body).data.resolved_content]).toEqual([200, "after the loss"])
  })

  it.each([4, 7])(
    "gets the new text if the service was suspended for %i s, during which the text changed and the wait ended",
    async (seconds) => {
      const service = await start()
      const [sent] = await hold(service, 1, seconds - 1)
      service.process.kill("SIGSTOP")
      const content = `after ${seconds} s`
      await edit(content)
      await setTimeout(seconds * 1_000)
      service.process.kill("SIGCONT")
      const { status, body } = await sent!.response
      expect([status, JSON.parse(body).data.resolved_content]).toEqual([200, content])
    }
  )
})
