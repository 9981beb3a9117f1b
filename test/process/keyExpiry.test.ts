import { describe, expect, it } from "vitest"
import { archive, key, prompt, user, workspace } from "../support/archives.ts"
import { startApi } from "../api/startApi.ts"
import { responseHits } from "../support/services/metrics.ts"

/** The longest time between the expiry of a key and the first rejected request, in milliseconds. */
const maxDelay = 100
/** The time between two requests of a reader, in milliseconds. */
const interval = 10

const sleep = (milliseconds: number) => new Promise((resolve) => setTimeout(resolve, milliseconds))

/** A response, with the times of its request and of its last byte in milliseconds since the epoch. */
interface Observation {
  readonly sentAt: number
  readonly receivedAt: number
  readonly status: number
  readonly message: string | undefined
}

/** Sends a request every `interval` until the time `until`. `makeUrl` gets the index of the request. */
const observe = async (makeUrl: (n: number) => string, authorization: string, until: number) => {
  const requests: Array<Promise<Observation>> = []
  const send = async (): Promise<Observation> => {
    const sentAt = Date.now()
    const response = await fetch(makeUrl(requests.length), { headers: { authorization } })
    const { error } = (await response.json()) as { readonly error?: { readonly message: string } }
    return { sentAt, receivedAt: Date.now(), status: response.status, message: error?.message }
  }
  while (Date.now() < until) {
    requests.push(send())
    await sleep(interval)
  }
  return Promise.all(requests)
}

describe("the expiry of a key", { timeout: 60_000 }, () => {
  const [home, owner, one] = [workspace(), user(), prompt()]
  // The rejection of an uncached request drops the cached responses of its key, so each reader has its own key.
  const expiring = { cached: key(home.id, owner), uncached: key(home.id, owner) }
  const lasting = key(home.id, owner)
  const api_keys = [expiring.cached.stored, expiring.uncached.stored, lasting.stored]
  const api = startApi([archive({ workspace: home, users: [owner], api_keys, prompts: [one] })])

  it("an expired key is rejected like a revoked key within 100 ms, even if its responses are cached", async () => {
    const end = Date.now() + 3_000
    await api.sql("update api_keys set expires_at = $1 where id <> $2", [
      new Date(end).toISOString(),
      lasting.stored.id
    ])
    const before = await api.metric(responseHits)
    const observeAll = (query: (n: number) => string, { plaintext }: typeof lasting) => {
      const url = `${api.service().url}/api/v1/prompts/${one.id}`
      return observe((n) => url + query(n), `Bearer ${plaintext}`, end + 1_000)
    }
    const cached = () => ""
    // The service ignores the unknown parameter, but it has no cached response for the new target.
    const uncached = (n: number) => `?n=${n}`
    const [expiredCached, expiredUncached, others] = await Promise.all([
      observeAll(cached, expiring.cached),
      observeAll(uncached, expiring.uncached),
      observeAll(cached, lasting)
    ])
    for (const observations of [expiredCached, expiredUncached]) {
      const beforeEnd = observations.filter(({ receivedAt }) => receivedAt < end)
      expect(beforeEnd.length).toBeGreaterThan(20)
      expect(new Set(beforeEnd.map(({ status }) => status))).toEqual(new Set([200]))
      const rejected = observations.filter(({ status }) => status !== 200)
      expect(new Set(rejected.map(({ status, message }) => `${status} ${message}`))).toEqual(
        new Set(["401 API key has been revoked"])
      )
      expect(Math.min(...rejected.map(({ sentAt }) => sentAt)) - end).toBeLessThan(maxDelay)
      expect(observations.filter(({ sentAt, status }) => sentAt >= end && status === 200)).toEqual([])
    }
    expect(new Set(others.map(({ status }) => status))).toEqual(new Set([200]))
    expect((await api.metric(responseHits)) - before).toBeGreaterThan(50)
  })
})
