/** The scenarios with several processes and with a standby (`--only scale`). */
import { setTimeout } from "node:timers/promises"
import { freshCluster, makeStandby } from "../test/support/database/cluster.ts"
import { makeResources } from "../test/support/database.ts"
import type { Scenario } from "./comparisons.ts"
import { createDataset, thousand } from "./dataset.ts"
import { type Stream, startGenerator } from "./load.ts"
import { atLeast, atMost, type Measurement } from "./measurement.ts"
import { makeServiceStart, type ServerProcess } from "./processes.ts"
import { eachOnce, numbers, thousandPrompts } from "./requests.ts"

let unknownParameters = 0
/** Returns `count` requests. Each has a new, ignored parameter, so that no cached response matches. */
const withoutCache = (requests: Stream, count: number): Stream =>
  eachOnce({
    ...requests,
    targets: Array.from(
      { length: count },
      (_, index) => `${requests.targets[index % requests.targets.length]!}?u=${unknownParameters++}`
    )
  })

// ---- processes

const counts = [1, 2, 4]
/** The requests per second to each process. These rates leave processors idle. */
const steadyRates = { cached: 4_000, uncached: 300 }

/** Compares the CPU time per request with several processes and with one process. */
const processes: Scenario = {
  group: "scale",
  title: "CPU time per request",
  workspaces: [thousand],
  measure: async (harness) => {
    const { seconds, rounds } = harness.scale
    const servers: Array<ServerProcess> = []
    for (const _ of numbers(Math.max(...counts)))
      servers.push(await harness.start(await makeServiceStart(harness.dataset.url)))
    const generators = servers.map(startGenerator)
    const measureCost = async (used: ReadonlyArray<ServerProcess>, kind: keyof typeof steadyRates) => {
      const before = used.reduce((sum, { cpuTime }) => sum + cpuTime(), 0)
      const results = await Promise.all(
        used.map(({ port }, index) => {
          const rate = steadyRates[kind]
          const requests = { ...thousandPrompts, rate }
          const streams = [kind === "cached" ? requests : withoutCache(requests, rate * 2 * seconds)]
          return generators[index]!.run({ port, seconds: 2 * seconds, streams })
        })
      )
      const sent = results.reduce((sum, { streams }) => sum + streams[0]!.latencies.length, 0)
      return ((used.reduce((sum, { cpuTime }) => sum + cpuTime(), 0) - before) * 1e6) / sent
    }
    const measurements: Array<Measurement> = []
    try {
      for (const kind of ["cached", "uncached"] as const) {
        await measureCost(servers, kind)
        const costs = counts.map((): Array<number> => [])
        for (let round = 0; round < rounds; round++)
          for (const [index, count] of counts.entries())
            costs[index]!.push(await measureCost(servers.slice(0, count), kind))
        for (const [index, count] of counts.entries())
          measurements.push(
            index === 0
              ? { title: `${processes.title}, ${kind}, 1 process`, unit: "µs", samples: costs[0]! }
              : {
                  title: `${processes.title}, ${kind}, ${count} processes`,
                  unit: "of one process",
                  goal: atMost(1.2, 1.05),
                  samples: costs[index]!.map((cost, round) => cost / costs[0]![round]!)
                }
          )
      }
    } finally {
      for (const { stop } of generators) await stop()
      for (const { stop } of servers) await stop()
    }
    return measurements
  }
}

// ---- a standby

/** Returns how many reads a service has run on the standby and on the primary. */
const countReads = async (metricsPort: string) => {
  const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text()
  const read = (target: string) =>
    Number(new RegExp(`replica_reads_total\\{target="${target}"\\} (\\d+)`).exec(text)?.[1] ?? 0)
  return { standby: read("replica"), primary: read("primary") }
}

/** Measures the share of uncached reads that run on a standby. Starts a primary and a standby for this. */
const standby: Scenario = {
  group: "scale",
  title: "Uncached reads that run on the standby",
  workspaces: [],
  measure: async ({ generator, scale, start }) => {
    const resources = makeResources()
    try {
      const cluster = await resources.acquire(freshCluster)
      await cluster.start()
      const dataset = await createDataset(cluster.url)
      await dataset.load(thousand)
      const replica = await resources.acquire(makeStandby(cluster))
      await replica.start()
      const url = new URL(replica.url)
      url.pathname = new URL(dataset.url).pathname
      const options = await makeServiceStart(dataset.url, { DATABASE_REPLICA_URL: url.href })
      const server = await start(options)
      const samples: Array<number> = []
      try {
        await setTimeout(5_000)
        for (let round = 0; round < scale.rounds; round++) {
          const before = await countReads(options.env.METRICS_PORT!)
          await generator.run({
            port: server.port,
            seconds: 60,
            streams: [withoutCache(thousandPrompts, 5_000)]
          })
          const after = await countReads(options.env.METRICS_PORT!)
          const onStandby = after.standby - before.standby
          samples.push(onStandby / (onStandby + after.primary - before.primary))
        }
      } finally {
        await server.stop()
        await replica.stop()
        await dataset.drop()
      }
      return [{ title: standby.title, unit: "of all", goal: atLeast(0.9, 0.98), samples }]
    } finally {
      await resources.release()
    }
  }
}

export const scaling: ReadonlyArray<Scenario> = [processes, standby]
