import { describe, expect, it } from "vitest"
import { sample } from "../../support/archives.ts"
import { startLoad } from "../../support/clients/load.ts"
import type { Reply } from "../../support/clients/read.ts"
import { uncachedPath } from "../../support/clients/requests.ts"
import { connectTo } from "../../support/database/connection.ts"
import { followPrimary, type Pair, startPair } from "../../support/database/failover.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { freePort } from "../../support/network/ports.ts"
import { readMetric } from "../../support/services/metrics.ts"
import { runService, type Service, startService, unlimited } from "../../support/services/startService.ts"

const pollOptions = { interval: 20 }

/** A response of a process. */
interface Observation extends Pick<Reply, "status" | "startedAt"> {
  /** The index of the client. */
  readonly client: number
  /** The number in the title of the prompt, or -1 if the status is not 200. */
  readonly number: number
}

describe("a service whose PostgreSQL primary fails over behind HAProxy", () => {
  const acquire = makeAcquire()
  const { archive, keys } = sample()
  const prompt = archive.prompts[0]!.id
  const item = `/api/v1/prompts/${prompt}`
  const key = keys.active.plaintext

  const start = (env: Readonly<Record<string, string>>): Promise<Service> =>
    acquire(runService(() => startService({ ...unlimited, ...env })))

  const connect = async (DATABASE_URL: string) => (await acquire(connectTo({ DATABASE_URL }))).sql
  /** Writes a number to the title of the prompt. */
  const write = (sql: Awaited<ReturnType<typeof connect>>, number: number) =>
    sql("update prompts set title = $1 where id = $2", [`Edit ${number}`, prompt])

  /** Reads a process continuously with four clients. Every second client does not use the cache of the process. */
  const observe = ({ url }: Service) => {
    const observations: Array<Observation> = []
    const loads = [0, 1, 2, 3].map((client) => {
      const onReply = ({ status, body, startedAt }: Reply) => {
        const number = status === 200 ? Number(JSON.parse(body).data.title.slice("Edit ".length)) : -1
        observations.push({ status, startedAt, client, number })
      }
      const next = () => ({ url: url + (client % 2 === 0 ? item : uncachedPath(item)), key, onReply })
      return startLoad({ next, clients: 1, pauseMs: 2 })
    })
    return { observations, loads }
  }

  /** The ways in which a primary fails and later runs again. A silent primary does not respond. */
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
      const onPrimary = await connect(pair.primary.url)
      // A commit returns once the standby has applied it.
      await onPrimary("alter system set synchronous_standby_names = '*'")
      await onPrimary("alter system set synchronous_commit = 'remote_apply'")
      await onPrimary("select pg_reload_conf()")
      await write(onPrimary, 0)
      const metricsPorts = [await freePort(), await freePort()]
      const processes = await Promise.all(
        metricsPorts.map((port) =>
          // During an outage, cached responses can be outdated, so the service must not return them.
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
        await write(onPrimary, number)
        await waitFor(number)
      }
      const failedAt = performance.now()
      await fail(pair)
      // A process can serve cached responses for another 3 s after the failure.
      const areDown = () =>
        observers.every(({ observations }) =>
          observations.some(({ client, status }) => client % 2 === 0 && status === 503)
        )
      await expect.poll(areDown, pollOptions).toBe(true)

      const onStandby = await connect(pair.standby.url)
      await onStandby("select pg_promote(true, 60)")
      await write(onStandby, 21)
      const writtenAt = performance.now()
      await waitFor(21)
      await restart(pair)
      const onOldPrimary = await connect(pair.primary.url)
      await onOldPrimary("alter system set synchronous_standby_names = ''")
      await onOldPrimary("select pg_reload_conf()")
      await write(onOldPrimary, 1_000_000)

      // Once the change feeds are up again, notifications make the next edits visible.
      for (const port of metricsPorts)
        await expect.poll(() => readMetric(port, "prompt_retrieval_change_feed_up"), pollOptions).toBe(1)
      for (let number = 22; number <= 40; number++) {
        await write(onStandby, number)
        await waitFor(number)
      }
      await Promise.all(observers.flatMap(({ loads }) => loads.map((load) => load.stop())))

      for (const { observations } of observers) {
        expect(new Set(observations.map(({ status }) => status))).toEqual(new Set([200, 503]))
        const shown = observations.filter(({ number }) => number !== -1)
        for (const ofClient of Object.values(Object.groupBy(shown, ({ client }) => client))) {
          const numbers = ofClient!.map(({ number }) => number)
          expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
        }
        const isOutdated = ({ startedAt, number }: Observation) =>
          (startedAt > failedAt && number < 20) || (startedAt > writtenAt && number < 21)
        expect(shown.filter(isOutdated)).toEqual([])
        expect(Math.max(...shown.map(({ number }) => number))).toBe(40)
      }
    },
    120_000
  )
})
