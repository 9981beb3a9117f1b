/** The scenario with several processes (`--only scale`). */
import type { Scenario } from "./comparisons.ts"
import { thousand } from "./dataset.ts"
import { type Stream, startGenerator } from "./load.ts"
import { atMost, type Measurement } from "./measurement.ts"
import { makeServiceStart, type ServerProcess } from "./processes.ts"
import { eachOnce, numbers, thousandPrompts } from "./requests.ts"

let unknownParameters = 0
/** Returns `count` requests, each with a new parameter that the API ignores, so that no cached response matches. */
const withoutCache = (requests: Stream, count: number): Stream =>
  eachOnce({
    ...requests,
    targets: Array.from(
      { length: count },
      (_, index) => `${requests.targets[index % requests.targets.length]!}?u=${unknownParameters++}`
    )
  })

const counts = [1, 2, 4]
/** The requests per second to each process. At these rates, the processors are not fully used. */
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

export const scaling: ReadonlyArray<Scenario> = [processes]
