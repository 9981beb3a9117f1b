import { once } from "node:events"
import { setTimeout } from "node:timers/promises"
import { PromptClient } from "../../client/src/index.ts"
import { key, sample } from "./archives.ts"
import { connectTo, makeResources, postgres } from "./database.ts"
import { freePort } from "./ports.ts"
import { startService } from "./service.ts"

/** How often each application reads its prompt, in milliseconds. */
const readInterval = 1_000
/** How many clients share a key. */
const clientsPerKey = 20

export interface HerdOptions {
  readonly clients: number
  /** How long a client returns a cached text without a request, in milliseconds. */
  readonly ttl: number
  readonly outage: number
  /** The length of the periods in which requests are counted, in milliseconds. */
  readonly period: number
}

/** A request that got a response. */
interface Exchange {
  readonly sentAt: number
  readonly at: number
  readonly client: number
  readonly status: number
}

/** What a service saw of its clients before an outage and after its restart. Rates are per second. */
export interface HerdReport {
  readonly steadyRate: number
  /** The highest rate in any period after the restart. */
  readonly peakRate: number
  /** When the last client got its first response once the service was ready again, in milliseconds. */
  readonly allFreshAfter: number
  /** How many clients got no response after the restart. */
  readonly neverFresh: number
  /** The attempts per second that found no service in the outage. */
  readonly outageAttempts: number
  /** The responses to requests that were sent once the service was ready again, by status. */
  readonly statuses: Readonly<Record<number, number>>
  /** Reads that rejected instead of returning a text. */
  readonly failedReads: number
}

/**
 * Runs many applications against one process of the service with the default limit of each key. The process is killed
 * and started again after the outage. No text is in its memory then.
 */
export const runHerd = async ({ clients, ttl, outage, period }: HerdOptions): Promise<HerdReport> => {
  const resources = makeResources()
  const { archive } = sample()
  const keys = Array.from({ length: Math.ceil(clients / clientsPerKey) }, () =>
    key(archive.workspace.id, archive.users[0]!)
  )
  const env = {
    ...(await resources.acquire(postgres.acquire)),
    PORT: String(await freePort()),
    RATE_LIMIT_PER_PROCESS: "1000000",
    LOG_LEVEL: "Warn"
  }
  let service = await startService(env)
  const stopping = new AbortController()
  try {
    await (await resources.acquire(connectTo(env))).importArchive({
      ...archive,
      api_keys: [...archive.api_keys, ...keys.map(({ stored }) => stored)]
    })
    const responses: Array<Exchange> = []
    let lostAttempts = 0
    let failedReads = 0

    const runClient = async (index: number) => {
      const client = new PromptClient({
        apiKey: keys[index % keys.length]!.plaintext,
        baseUrl: service.url,
        cache: { ttl, maxStale: outage + 10 * ttl },
        fetch: async (url, init) => {
          const sentAt = performance.now()
          try {
            const response = await fetch(url, init)
            responses.push({ sentAt, at: performance.now(), client: index, status: response.status })
            return response
          } catch (error) {
            lostAttempts++
            throw error
          }
        }
      })
      const prompt = archive.prompts[index % archive.prompts.length]!.id
      // The applications start one after another, so that their requests are spread.
      await setTimeout((index / clients) * ttl, undefined, { signal: stopping.signal })
      while (!stopping.signal.aborted) {
        await client.prompts.getResolved(prompt).catch(() => failedReads++)
        await setTimeout(readInterval, undefined, { signal: stopping.signal })
      }
    }
    const running = Array.from({ length: clients }, (_, index) => runClient(index).catch(() => {}))

    await setTimeout(ttl + readInterval)
    const steadyStart = performance.now()
    await setTimeout(ttl + readInterval)
    const steadySeconds = (performance.now() - steadyStart) / 1_000
    const steadyRate = responses.filter(({ sentAt }) => sentAt >= steadyStart).length / steadySeconds

    const exited = once(service.process, "exit")
    service.process.kill("SIGKILL")
    await exited
    const outageStart = performance.now()
    lostAttempts = 0
    await setTimeout(outage)
    const outageAttempts = lostAttempts / ((performance.now() - outageStart) / 1_000)
    service = await startService(env)
    const readyAt = performance.now()
    await setTimeout(ttl + 2 * period)
    const after = responses.filter(({ sentAt }) => sentAt > outageStart)
    stopping.abort()
    await Promise.all(running)

    const restartedAt = Math.min(...after.map(({ sentAt }) => sentAt))
    const firstSuccesses = new Map<number, number>()
    const counts: Array<number> = Array(Math.ceil((performance.now() - restartedAt) / period)).fill(0)
    const statuses: Record<number, number> = {}
    for (const { sentAt, at, client, status } of after) {
      const index = Math.floor((sentAt - restartedAt) / period)
      counts[index]!++
      if (sentAt >= readyAt) statuses[status] = (statuses[status] ?? 0) + 1
      if ((status === 200 || status === 304) && !firstSuccesses.has(client))
        firstSuccesses.set(client, at - readyAt)
    }
    return {
      steadyRate,
      peakRate: Math.max(...counts) / (period / 1_000),
      allFreshAfter: Math.max(...firstSuccesses.values()),
      neverFresh: clients - firstSuccesses.size,
      outageAttempts,
      statuses,
      failedReads
    }
  } finally {
    stopping.abort()
    await service.stop()
    await resources.release()
  }
}
