import type * as Effect from "effect/Effect"
import { describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { startLoad } from "../../support/clients/load.ts"
import type { Reply } from "../../support/clients/read.ts"
import { uncachedPath } from "../../support/clients/requests.ts"
import { followPrimary, type Pair, startPair } from "../../support/database/failover.ts"
import { connectTo } from "../../support/database.ts"
import { freePort } from "../../support/ports.ts"
import { runService, type Service, startService, unlimited } from "../../support/service.ts"
import { readMetric } from "../../support/services/metrics.ts"
import { makeAcquire } from "../../support/testDatabase.ts"

const pollOptions = { interval: 20 }

/** A response of a process. */
interface Observation extends Pick<Reply, "status" | "startedAt" | "endedAt"> {
  /** True if the cache of the process may contain the response. */
  readonly isCacheable: boolean
  /** The number in the title of the prompt if the status is 200. */
  readonly number: number | undefined
}

/**
 * Returns the observations that contain an older state than an earlier response of the same process. An uncached read
 * may contain a commit some milliseconds before the notification arrives, so it is not compared with cached reads.
 */
const findStepsBack = (observations: ReadonlyArray<Observation>): ReadonlyArray<Observation> =>
  observations.filter(
    ({ number, startedAt, isCacheable }) =>
      number !== undefined &&
      observations.some(
        (earlier) =>
          earlier.isCacheable === isCacheable && earlier.endedAt < startedAt && (earlier.number ?? 0) > number
      )
  )

describe("a service whose PostgreSQL primary fails over behind HAProxy", () => {
  const acquire = makeAcquire()
  const { archive, keys } = sample()
  const prompt = archive.prompts[0]!.id
  const item = `/api/v1/prompts/${prompt}`
  const key = keys.active.plaintext

  const start = (env: Readonly<Record<string, string>>): Promise<Service> =>
    acquire(runService(() => startService({ ...unlimited, ...env })))

  type Sql = Effect.Success<ReturnType<typeof connectTo>>["sql"]
  /** Connects to a server, and returns a function that writes a number to the title of the prompt. */
  const openWriter = async (
    DATABASE_URL: string
  ): Promise<{ sql: Sql; write(number: number): Promise<unknown> }> => {
    const { sql } = await acquire(connectTo({ DATABASE_URL }))
    return {
      sql,
      write: (number) => sql("update prompts set title = $1 where id = $2", [`Edit ${number}`, prompt])
    }
  }

  /** Reads a process continuously, with and without its cache. */
  const observe = ({ url }: Service) => {
    const observations: Array<Observation> = []
    const record =
      (isCacheable: boolean) =>
      ({ status, body, startedAt, endedAt }: Reply) => {
        const number = status === 200 ? Number(JSON.parse(body).data.title.slice("Edit ".length)) : undefined
        observations.push({ status, startedAt, endedAt, isCacheable, number })
      }
    const load = startLoad({
      next: (n) => {
        const isCacheable = n % 2 === 0
        return { url: url + (isCacheable ? item : uncachedPath(item)), key, onReply: record(isCacheable) }
      },
      clients: 4,
      pauseMs: 2
    })
    return { observations, load }
  }

  /** How a primary fails, and how it runs again: its connections end, or it stops responding. */
  const failures = [
    {
      name: "killed",
      fail: ({ primary }: Pair) => primary.kill(),
      restart: ({ primary }: Pair) => primary.start()
    },
    {
      name: "silent",
      fail: async ({ primary }: Pair) => primary.freeze(),
      restart: async ({ primary }: Pair) => primary.thaw()
    }
  ]

  it.each(failures)(
    "when the primary is $name and the standby is promoted, no response is outdated, even if the old primary runs again",
    async ({ fail, restart }) => {
      const pair = await acquire(startPair(archive))
      const DATABASE_URL = await acquire(followPrimary(pair))
      const before = await openWriter(pair.primary.url)
      // A commit returns once the standby has applied it.
      await before.sql("alter system set synchronous_standby_names = '*'")
      await before.sql("alter system set synchronous_commit = 'remote_apply'")
      await before.sql("select pg_reload_conf()")
      await before.write(0)
      const metricsPorts = [await freePort(), await freePort()]
      const processes = await Promise.all(
        metricsPorts.map((port) =>
          // Known responses may be outdated, so the service must not return any.
          start({ DATABASE_URL, METRICS_PORT: String(port), OUTAGE_MAX_AGE: "0 seconds" })
        )
      )
      const observers = processes.map(observe)
      /** Waits until the latest response of each process contains a number. */
      const waitFor = (number: number) =>
        expect
          .poll(() => observers.map(({ observations }) => observations.at(-1)?.number), pollOptions)
          .toEqual([number, number])

      for (let number = 1; number <= 20; number++) {
        await before.write(number)
        await waitFor(number)
      }
      const failedAt = performance.now()
      await fail(pair)
      // Cached responses may be served for another 3 s after the failure.
      const areDown = () =>
        observers.every(({ observations }) =>
          observations.some(({ isCacheable, status }) => isCacheable && status === 503)
        )
      await expect.poll(areDown, pollOptions).toBe(true)

      const after = await openWriter(pair.standby.url)
      await after.sql("select pg_promote(true, 60)")
      await after.write(21)
      const writtenAt = performance.now()
      await waitFor(21)
      await restart(pair)
      const stray = await openWriter(pair.primary.url)
      await stray.sql("alter system set synchronous_standby_names = ''")
      await stray.sql("select pg_reload_conf()")
      await stray.write(1_000_000)

      // The change feeds are up again, so notifications make the next edits visible.
      for (const port of metricsPorts)
        await expect.poll(() => readMetric(port, "prompt_retrieval_change_feed_up"), pollOptions).toBe(1)
      for (let number = 22; number <= 40; number++) {
        await after.write(number)
        await waitFor(number)
      }
      await Promise.all(observers.map(({ load }) => load.stop()))

      for (const { observations } of observers) {
        expect(new Set(observations.map(({ status }) => status))).toEqual(new Set([200, 503]))
        expect(findStepsBack(observations)).toEqual([])
        const shown = observations.filter(({ number }) => number !== undefined)
        const isOutdated = ({ startedAt, number }: Observation) =>
          (startedAt > failedAt && number! < 20) || (startedAt > writtenAt && number! < 21)
        expect(shown.filter(isOutdated)).toEqual([])
        expect(Math.max(...shown.map(({ number }) => number!))).toBe(40)
      }
    },
    120_000
  )
})
