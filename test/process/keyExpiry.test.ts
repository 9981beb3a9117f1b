import { expect, it } from "vitest"
import { key, makeTenant, prompt } from "../support/archives.ts"
import { startApi } from "../api/startApi.ts"
import { responseHits } from "../support/services/metrics.ts"
import { read } from "../support/clients/read.ts"

const [one, tenant] = [prompt(), makeTenant()]
// The rejection of an uncached request drops the cached responses of its key, so each reader has its own key.
const [cached, uncached, lasting] = [tenant.key, ...[1, 2].map(() => key(tenant.home.id, tenant.owner))] as [
  typeof tenant.key,
  typeof tenant.key,
  typeof tenant.key
]
const api_keys = [cached, uncached, lasting].map(({ stored }) => stored)
const api = startApi([{ ...tenant.archive, prompts: [one], api_keys }])

it("an expired key is rejected like a revoked key from the time of its expiry, even if its responses are cached", async () => {
  const end = Date.now() + 3_000
  const expiry = new Date(end).toISOString()
  await api.sql("update api_keys set expires_at = $1 where id <> $2", [expiry, lasting.stored.id])
  const before = await api.metric(responseHits)
  /** Sends one request after another, until some time after the expiry. `toQuery` gets the number of the request. */
  const observe = async ({ plaintext }: typeof lasting, toQuery: (n: number) => string) => {
    const observations = []
    for (let after = 0, n = 0; after < 20; n++) {
      const sentAt = Date.now()
      const { status, body } = await read(
        `${api.service().url}/api/v1/prompts/${one.id}${toQuery(n)}`,
        plaintext
      )
      if (sentAt > end) after++
      observations.push({ sentAt, receivedAt: Date.now(), status, message: JSON.parse(body).error?.message })
    }
    return observations
  }
  const [expired, others] = await Promise.all([
    // The service ignores the unknown parameter, but it has no cached response for the new target.
    Promise.all([observe(cached, () => ""), observe(uncached, (n) => `?n=${n}`)]),
    observe(lasting, () => "")
  ])
  for (const observations of expired) {
    const early = observations.filter(({ receivedAt }) => receivedAt < end)
    expect(early.length).toBeGreaterThan(1)
    expect(new Set(early.map(({ status }) => status))).toEqual(new Set([200]))
    const late = observations.filter(({ sentAt }) => sentAt >= end)
    expect(new Set(late.map(({ status, message }) => `${status} ${message}`))).toEqual(
      new Set(["401 API key has been revoked"])
    )
  }
  expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]))
  expect((await api.metric(responseHits)) - before).toBeGreaterThan(1)
})
