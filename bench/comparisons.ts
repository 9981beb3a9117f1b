/**
 * The parts that the scenarios share: the servers to measure, the check of the responses, and the kinds of comparison.
 */
import { deepStrictEqual } from "node:assert/strict"
import type { HttpResponse } from "../test/support/clients/rawHttp.ts"
import type { FixedResponse } from "./baselines/bare.ts"
import { thousand, type Workspace } from "./dataset.ts"
import {
  alternate,
  cpuPerRequest,
  type Harness,
  latency,
  type Metric,
  perSecond,
  type Rounds,
  ratios,
  summarize
} from "./harness.ts"
import { expectedStatus, type Stream } from "./load.ts"
import type { Goal, Measurement } from "./measurement.ts"
import { makeServiceStart, probe, type ServerProcess, type Start, unlimitedRates } from "./processes.ts"
import { eachOnce, send, splitByRound } from "./requests.ts"

/** A scenario that the benchmark measures. `--only` selects scenarios by their group. */
export interface Scenario {
  readonly group: string
  readonly title: string
  readonly workspaces: ReadonlyArray<Workspace>
  readonly measure: (harness: Harness) => Promise<ReadonlyArray<Measurement>>
}

// ---- servers

export const makeBaselineStart = ({ dataset }: Harness): Start => ({
  program: "fastify",
  env: { DATABASE_URL: dataset.url, ...unlimitedRates },
  probe
})

export const startService = (harness: Harness) =>
  harness.shared("service", () => makeServiceStart(harness.dataset.url))
export const fastifyBaseline = (harness: Harness) =>
  harness.shared("fastify", async () => makeBaselineStart(harness))

// ---- correctness, checked before each measurement

/** Headers that a comparison ignores, because they depend on the connection or the time. */
const transientHeaders = ["date", "connection", "keep-alive", "x-request-id", "content-length"]

const toComparable = ({ status, headers, body }: HttpResponse) => ({
  status,
  headers: Object.fromEntries(headers.filter(([name]) => !transientHeaders.includes(name))),
  body
})

/**
 * Sends the first, the middle and the last request of a stream. Throws unless the service responds with the expected
 * status and exactly like the Fastify baseline.
 */
export const assertSameAsBaseline = async (
  harness: Harness,
  server: ServerProcess,
  requests: Stream
): Promise<void> => {
  const baseline = await fastifyBaseline(harness)
  const last = requests.targets.length - 1
  for (const index of new Set([0, last >> 1, last])) {
    const response = toComparable(await send(server, requests, index))
    const target = requests.targets[index]
    deepStrictEqual(response.status, expectedStatus(requests, index), `${target}: status ${response.status}`)
    deepStrictEqual(
      response,
      toComparable(await send(baseline, requests, index)),
      `${target} differs from the Fastify baseline`
    )
  }
}

// ---- values that are compared

/** The value that a comparison takes from each round, and the unit of the ratio of two values. */
interface Comparison {
  readonly metric: (stream: number) => Metric
  readonly toUnit: (baseline: string) => string
}

/** Compares requests per second. A larger ratio is better. */
export const throughput: Comparison = { metric: perSecond, toUnit: (baseline) => `of ${baseline}` }

/** Compares quantiles of the latency. A smaller ratio is better. */
const compareLatency = (q: number): Comparison => ({
  metric: (stream) => latency(q, stream),
  toUnit: (baseline) => `of ${baseline}'s p${100 * q}`
})

/** Compares the CPU time of the servers per request. A smaller ratio is better. */
const cpuTime: Comparison = {
  metric: () => cpuPerRequest,
  toUnit: (baseline) => `of ${baseline}'s CPU time`
}

export const p50 = compareLatency(0.5)
export const p99 = compareLatency(0.99)

/** Returns the values of the service, divided by the values of a baseline in the same rounds. */
export const toRatios = (
  title: string,
  goal: Goal,
  rounds: Rounds,
  baseline: "bare" | "Fastify" | "reads by id",
  { metric, toUnit }: Comparison = throughput,
  stream = 0
): Measurement => ({
  title,
  unit: toUnit(baseline),
  goal,
  samples: ratios(rounds, metric(stream)),
  detail: summarize(rounds, ["service", baseline.toLowerCase()], stream)
})

// ---- compared with the bare server

/**
 * Sends the same requests to a server and to the bare server. The bare server always sends one response of that server.
 */
export const compareWithBare = async (
  harness: Harness,
  server: ServerProcess,
  requests: Stream
): Promise<Rounds> => {
  const { status, headers, body } = await send(server, requests)
  const response: FixedResponse = {
    status,
    headers: Object.fromEntries(
      headers.filter(([name]) => !["date", "connection", "keep-alive"].includes(name))
    ),
    body
  }
  const bare = await harness.start({
    program: "bare",
    env: {},
    stdin: JSON.stringify(response),
    probe: { ...probe, expect: status }
  })
  const { port } = server
  // Fills the response cache before the first round.
  await harness.generator.run({ port, seconds: 60, streams: [eachOnce(requests)] })
  const side = { streams: () => [requests], warmUp: () => [requests] }
  const rounds = await alternate(harness, { server, ...side }, { server: bare, ...side })
  await bare.stop()
  return rounds
}

/** Creates a scenario that compares the shared service with the bare server. */
export const bareScenario = (
  group: string,
  title: string,
  goal: Goal,
  workspace: Workspace,
  makeRequests: (harness: Harness) => Promise<Stream> | Stream,
  comparison: Comparison = throughput
): Scenario => ({
  group,
  title,
  workspaces: [thousand, workspace],
  measure: async (harness) => {
    const server = await startService(harness)
    const requests = await makeRequests(harness)
    await assertSameAsBaseline(harness, server, requests)
    const rounds = await compareWithBare(harness, server, requests)
    return [toRatios(title, goal, rounds, "bare", comparison)]
  }
})

// ---- compared with the Fastify baseline

/** Creates a scenario that compares the shared service with the Fastify baseline. No request gets a cached response. */
export const uncachedScenario = (
  group: string,
  title: string,
  goal: Goal,
  workspace: Workspace,
  makeRequests: () => Stream,
  comparison: Comparison = throughput,
  cpuGoal?: Goal
): Scenario => ({
  group,
  title,
  workspaces: [thousand, workspace],
  measure: async (harness) => {
    const [server, baseline] = [await startService(harness), await fastifyBaseline(harness)]
    const requests = splitByRound(makeRequests(), harness.scale.rounds)
    await assertSameAsBaseline(harness, server, requests.warmUp(0)[0]!)
    const rounds = await alternate(harness, { server, ...requests }, { server: baseline, ...requests })
    const cpuTimes = cpuGoal && toRatios(`CPU time: ${title}`, cpuGoal, rounds, "Fastify", cpuTime)
    return [toRatios(title, goal, rounds, "Fastify", comparison), ...(cpuTimes ? [cpuTimes] : [])]
  }
})
