import { deepStrictEqual } from "node:assert/strict"
import { setTimeout } from "node:timers/promises"
import type { PromptId } from "../src/domain/Prompt.ts"
import { type ResolutionSource, resolve } from "../src/domain/Resolution.ts"
import type { HttpResponse } from "../test/support/rawHttp.ts"
import type { FixedResponse } from "./baselines/bare.ts"
import { hundredThousand, makeId, million, thousand, type Workspace } from "./dataset.ts"
import { alternate, type Harness, latency, perSecond, type Rounds, ratios, summarize } from "./harness.ts"
import { median, quantile, type Stream } from "./load.ts"
import { atLeast, atMost, type Goal, type Measurement } from "./measurement.ts"
import { makeServiceStart, probe, type ServerProcess, type Start, unlimitedRates } from "./processes.ts"
import {
  eachOnce,
  lastPage,
  makeStream,
  numbers,
  onePrompt,
  overLimit,
  page,
  prompt,
  resolved,
  send,
  shuffle,
  shuffledPages,
  shuffledPrompts,
  splitByRound,
  thousandPrompts,
  unknownKeys,
  withEtags
} from "./requests.ts"

/** A scenario that the benchmark measures. `--only` selects scenarios by their group. */
export interface Scenario {
  readonly group: string
  readonly title: string
  readonly workspaces: ReadonlyArray<Workspace>
  readonly measure: (harness: Harness) => Promise<ReadonlyArray<Measurement>>
}

// ---- servers

const makeBaselineStart = ({ dataset }: Harness): Start => ({
  program: "fastify",
  env: { DATABASE_URL: dataset.url, ...unlimitedRates },
  probe
})

const startService = (harness: Harness) =>
  harness.shared("service", () => makeServiceStart(harness.dataset.url))
const fastifyBaseline = (harness: Harness) =>
  harness.shared("fastify", async () => makeBaselineStart(harness))

// ---- correctness, checked before each measurement

/** Headers that belong to the connection or the moment and that a comparison ignores. */
const transientHeaders = ["date", "connection", "keep-alive", "x-request-id", "content-length"]

const toComparable = ({ status, headers, body }: HttpResponse) => ({
  status,
  headers: Object.fromEntries(headers.filter(([name]) => !transientHeaders.includes(name))),
  body
})

/** Throws unless the service's responses have the expected status and equal those of the Fastify baseline. */
const assertSameAsBaseline = async (
  harness: Harness,
  server: ServerProcess,
  requests: Stream
): Promise<void> => {
  const baseline = await fastifyBaseline(harness)
  const last = requests.targets.length - 1
  for (const index of new Set([0, last >> 1, last])) {
    const response = toComparable(await send(server, requests, index))
    deepStrictEqual(response.status, requests.expect, `${requests.targets[index]}: status ${response.status}`)
    deepStrictEqual(
      response,
      toComparable(await send(baseline, requests, index)),
      `${requests.targets[index]} differs from the Fastify baseline`
    )
  }
}

// ---- compared with the bare server

/** Measures the same requests on a server and on a bare server that sends the first one's response to all of them. */
const compareWithBare = async (
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
  // Every response is cached before the first round.
  await harness.generator.run({ port, seconds: 60, streams: [eachOnce(requests)] })
  const side = { streams: () => [requests], warmUp: [requests] }
  const rounds = await alternate(harness, { port, ...side }, { port: bare.port, ...side })
  await bare.stop()
  return rounds
}

const toBareRatio = (title: string, goal: Goal, rounds: Rounds): Measurement => ({
  title,
  unit: "of bare",
  goal,
  samples: ratios(rounds, perSecond()),
  detail: summarize(rounds, ["service", "bare"])
})

/** Creates a scenario that compares the shared service with the bare server. */
const bareScenario = (
  group: string,
  title: string,
  goal: Goal,
  workspace: Workspace,
  makeRequests: (harness: Harness) => Promise<Stream> | Stream
): Scenario => ({
  group,
  title,
  workspaces: [thousand, workspace],
  measure: async (harness) => {
    const server = await startService(harness)
    const requests = await makeRequests(harness)
    await assertSameAsBaseline(harness, server, requests)
    return [toBareRatio(title, goal, await compareWithBare(harness, server, requests))]
  }
})

const hotSinglePrompt: Scenario = {
  group: "hot",
  title: "Resolved read, hot, one prompt",
  workspaces: [thousand],
  measure: async (harness) => {
    const server = await startService(harness)
    await assertSameAsBaseline(harness, server, onePrompt)
    const rounds = await compareWithBare(harness, server, onePrompt)
    return [
      toBareRatio(hotSinglePrompt.title, atLeast(0.6, 0.75), rounds),
      {
        title: "p99 of the resolved read, hot, one prompt",
        unit: "of bare's p99",
        goal: atMost(2, 1.5),
        samples: ratios(rounds, latency(0.99))
      }
    ]
  }
}

const log: Scenario = {
  group: "log",
  title: "Resolved read with log lines",
  workspaces: [thousand],
  measure: async (harness) => {
    const server = await harness.start({
      ...(await makeServiceStart(harness.dataset.url, { LOG_LEVEL: "Info" })),
      silent: true
    })
    const goal = atLeast(0.45, 0.6)
    const measurements: Array<Measurement> = []
    for (const [name, requests] of [
      ["one prompt", onePrompt],
      ["1,000 prompts", thousandPrompts]
    ] as const) {
      await assertSameAsBaseline(harness, server, requests)
      measurements.push(
        toBareRatio(`${log.title}, ${name}`, goal, await compareWithBare(harness, server, requests))
      )
    }
    await server.stop()
    return measurements
  }
}

const rejection: Scenario = {
  group: "rejection",
  title: "429, a key over its limit",
  workspaces: [thousand],
  measure: async (harness) => {
    const server = await harness.start(
      await makeServiceStart(harness.dataset.url, { RATE_LIMIT_PER_KEY: "1" })
    )
    await send(server, overLimit)
    const { status, body } = await send(server, overLimit)
    const error = { code: "RATE_LIMITED", message: "Rate limit exceeded" }
    deepStrictEqual({ status, body: JSON.parse(body) }, { status: 429, body: { error } })
    const rounds = await compareWithBare(harness, server, overLimit)
    await server.stop()
    return [toBareRatio(rejection.title, atLeast(0.5, 0.7), rounds)]
  }
}

// ---- compared with the Fastify baseline

/** Creates a scenario that compares requests without cached responses with the Fastify baseline. */
const uncachedScenario = (
  group: string,
  title: string,
  goal: Goal,
  workspace: Workspace,
  targets: () => ReadonlyArray<string>
): Scenario => ({
  group,
  title,
  workspaces: [thousand, workspace],
  measure: async (harness) => {
    const [server, baseline] = [await startService(harness), await fastifyBaseline(harness)]
    const requests = splitByRound(makeStream(workspace, targets()), harness.scale.rounds)
    await assertSameAsBaseline(harness, server, requests.warmUp[0]!)
    const rounds = await alternate(
      harness,
      { port: server.port, ...requests },
      { port: baseline.port, ...requests }
    )
    const detail = summarize(rounds, ["service", "fastify"])
    return [{ title, unit: "of Fastify", goal, samples: ratios(rounds, perSecond()), detail }]
  }
})

const flood: Scenario = {
  group: "flood",
  title: "A flood of unknown keys",
  workspaces: [thousand],
  measure: async (harness) => {
    const [server, baseline] = [await startService(harness), await fastifyBaseline(harness)]
    const streams = [unknownKeys, { ...onePrompt, connections: 4 }]
    for (const requests of streams) await assertSameAsBaseline(harness, server, requests)
    const side = { streams: () => streams, warmUp: streams }
    const rounds = await alternate(harness, { port: server.port, ...side }, { port: baseline.port, ...side })
    return [
      {
        title: flood.title,
        unit: "of Fastify",
        goal: atLeast(1.3, 2),
        samples: ratios(rounds, perSecond(0)),
        detail: summarize(rounds, ["service", "fastify"], 0)
      },
      {
        title: "p99 of a good key meanwhile",
        unit: "of Fastify's p99",
        goal: atMost(0.3, 0.1),
        samples: ratios(rounds, latency(0.99, 1)),
        detail: summarize(rounds, ["service", "fastify"], 1)
      }
    ]
  }
}

const start: Scenario = {
  group: "start",
  title: "Start to the first 200",
  workspaces: [thousand],
  measure: async (harness) => {
    const measureStart = async (start: Start): Promise<number> => {
      const server = await harness.start(start)
      await server.stop()
      return server.startDuration
    }
    const pairs: Array<readonly [number, number]> = []
    await measureStart(await makeServiceStart(harness.dataset.url)) // fills Node's compile cache, which the other starts use
    for (let i = 0; i < harness.scale.starts; i++)
      pairs.push([
        await measureStart(await makeServiceStart(harness.dataset.url)),
        await measureStart(makeBaselineStart(harness))
      ])
    return [
      {
        title: start.title,
        unit: "of Fastify's time",
        goal: atMost(4, 3),
        samples: pairs.map(([a, b]) => a / b),
        detail: {
          "service ms": median(pairs.map(([a]) => a)),
          "fastify ms": median(pairs.map(([, b]) => b))
        }
      }
    ]
  }
}

// ---- compared with itself

const slowest: Scenario = {
  group: "slowest",
  title: "Slowest page of 100,000 prompts, first time",
  workspaces: [thousand, hundredThousand],
  measure: async (harness) => {
    const server = await harness.start(await makeServiceStart(harness.dataset.url))
    const depths = [0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1]
    /** Reads pages at all depths. Each call has another page size, so that none of its responses is cached. */
    const readPages = async (perPage: number): Promise<ReadonlyArray<number>> => {
      const last = lastPage(hundredThousand, perPage)
      const targets = depths.map((depth) => page(1 + Math.round(depth * (last - 1)), perPage))
      const requests = eachOnce({ ...makeStream(hundredThousand, targets), connections: 1 })
      const { streams } = await harness.generator.run({ port: server.port, seconds: 60, streams: [requests] })
      return [...streams[0]!.latencies]
    }
    for (let i = 0; i < 10; i++) await readPages(80 + i)
    const times: Array<ReadonlyArray<number>> = []
    for (let i = 0; i < 5 * harness.scale.rounds; i++) times.push(await readPages(30 + i))
    await server.stop()
    const medians = depths.map((_, depth) => median(times.map((time) => time[depth]!)))
    const slowestDepth = medians.indexOf(Math.max(...medians))
    return [
      {
        title: slowest.title,
        unit: "of page 1's time",
        goal: atMost(10, 4),
        samples: times.map((time) => time[slowestDepth]! / time[0]!),
        detail: Object.fromEntries(
          depths.map((depth, i) => [`at ${depth * 100} % of the list, ms`, medians[i]!])
        )
      }
    ]
  }
}

const millionPrompts: Scenario = {
  group: "million",
  title: "Page 1 of 1,000,000 prompts, hot",
  workspaces: [thousand, million],
  measure: async (harness) => {
    const server = await startService(harness)
    const [large, small] = [makeStream(million, [page(1)]), makeStream(thousand, [page(1)])]
    for (const requests of [large, small]) await assertSameAsBaseline(harness, server, requests)
    const side = (requests: Stream) => ({ port: server.port, streams: () => [requests], warmUp: [requests] })
    const rounds = await alternate(harness, side(large), side(small))
    return [
      {
        title: millionPrompts.title,
        unit: "of the time of 1,000 prompts",
        goal: atMost(1.25, 1.1),
        samples: ratios(rounds, perSecond()).map((ratio) => 1 / ratio),
        detail: summarize(rounds, ["1,000,000", "1,000"])
      }
    ]
  }
}

// ---- memory

/** Returns targets of every kind; most of them repeat. */
const makeMixedTargets = (): ReadonlyArray<string> => [
  ...numbers(1000).flatMap((i) => Array<string>(20).fill(resolved(hundredThousand, i))),
  ...shuffle(numbers(100_000))
    .slice(0, 10_000)
    .flatMap((i) => [resolved(hundredThousand, i), prompt(hundredThousand, i)]),
  ...numbers(1000).flatMap((i) => [
    page(i),
    `${page(1 + (i % 50))}&tag=tag${1 + (i % 20)}`,
    `${page(1 + (i % 50))}&type=system`,
    `${prompt(hundredThousand, i)}/versions`,
    `${prompt(hundredThousand, i)}/versions/${1 + (i % 30)}`
  ])
]

const memory: Scenario = {
  group: "memory",
  title: "Resident memory",
  workspaces: [thousand, hundredThousand],
  measure: async (harness) => {
    const { coldReads, mixedRequests } = harness.scale
    const server = await harness.start(await makeServiceStart(harness.dataset.url))
    const { port } = server
    const send = async (streams: ReadonlyArray<Stream>) => {
      const { streams: sent } = await harness.generator.run({ port, seconds: 1800, streams })
      return sent.reduce((sum, { latencies }) => sum + latencies.length, 0)
    }
    const measureMemory = async (title: string, bound: number, aim: number): Promise<Measurement> => ({
      title: `${memory.title} ${title}`,
      unit: "MiB",
      goal: atMost(bound, aim),
      samples: [await server.memory()]
    })
    const count = (value: number) => value.toLocaleString("en")
    await setTimeout(1000)
    const measurements = [await measureMemory("at the start", 170, 140)]
    const cold = shuffledPrompts(hundredThousand, resolved).slice(0, coldReads)
    const coldCount = await send([eachOnce(makeStream(hundredThousand, cold))])
    measurements.push(await measureMemory(`after ${count(coldCount)} cold reads`, 400, 300))
    const unknownCount = Math.floor(mixedRequests / 20)
    const mixedCount = await send([
      makeStream(hundredThousand, makeMixedTargets(), {
        maxRequests: mixedRequests - unknownCount,
        connections: 28
      }),
      { ...unknownKeys, maxRequests: unknownCount, connections: 4 }
    ])
    measurements.push(await measureMemory(`after ${count(mixedCount)} mixed requests`, 450, 350))
    await server.stop()
    return measurements
  }
}

// ---- for information

const sequential: Scenario = {
  group: "sequential",
  title: "1,000 sequential reads",
  workspaces: [thousand, hundredThousand],
  measure: async (harness) => {
    const server = await harness.start(await makeServiceStart(harness.dataset.url))
    const targets = numbers(1000).map((i) => resolved(hundredThousand, i))
    const requests = eachOnce({ ...makeStream(hundredThousand, targets), connections: 1 })
    const measureReads = async (title: string, { port }: ServerProcess): Promise<Measurement> => {
      const { streams } = await harness.generator.run({ port, seconds: 60, streams: [requests] })
      const { latencies } = streams[0]!
      const [p50, p99] = [quantile(latencies, 0.5), quantile(latencies, 0.99)]
      return {
        title: `${sequential.title}, ${title}`,
        unit: "ms, p50",
        samples: [p50],
        detail: { "p99 ms": p99 }
      }
    }
    for (const { port } of [server, await fastifyBaseline(harness)])
      await harness.generator.run({ port, seconds: 60, streams: [eachOnce(thousandPrompts)] })
    const measurements = [
      await measureReads("first time", server),
      await measureReads("again", server),
      await measureReads("Fastify", await fastifyBaseline(harness))
    ]
    await server.stop()
    return measurements
  }
}

const KiB = 1024

/** Creates a prompt whose only fragment has `size` bytes with two slots per hundred bytes. */
const makeSource = (size: number): ResolutionSource => ({
  id: makeId(thousand, "prompt", 1) as PromptId,
  title: "Title",
  prompt_type: "system",
  target_model: "model",
  current_content: "",
  fragments: [
    {
      content:
        "{{name}} and {{other}} and text that is copied as it is, a hundred characters of it all in all.\n\n. "
          .repeat(Math.ceil(size / 100))
          .slice(0, size),
      variable_overrides: { name: "a value" }
    }
  ]
})

const resolution: Scenario = {
  group: "resolution",
  title: "Resolution",
  workspaces: [],
  measure: async ({ scale }) => {
    const sizes = [1, 16, 256, 4096].map((size) => size * KiB)
    const measureRate = (source: ResolutionSource, size: number): number => {
      const until = performance.now() + 50 * scale.seconds
      const started = performance.now()
      let done = 0
      while (performance.now() < until || done === 0) {
        resolve(source)
        done += size
      }
      return done / 1000 / (performance.now() - started)
    }
    const rates = sizes.map((size) => {
      const source = makeSource(size)
      measureRate(source, size)
      return numbers(scale.rounds).map(() => measureRate(source, size))
    })
    const measurements = sizes.map((size, i) => ({
      title: `${resolution.title} of ${size / KiB} KiB`,
      unit: "MB/s",
      samples: rates[i]!
    }))
    const linear = rates.at(-1)!.map((rate) => rate / median(rates[1]!))
    return [...measurements, { title: "Linear: 4 MiB", unit: "of the rate at 16 KiB", samples: linear }]
  }
}

/** Every scenario in the order of measurement; the largest workspace is loaded last. */
export const scenarios: ReadonlyArray<Scenario> = [
  hotSinglePrompt,
  bareScenario(
    "hot",
    "Resolved read, hot, 1,000 prompts",
    atLeast(0.6, 0.75),
    thousand,
    () => thousandPrompts
  ),
  log,
  bareScenario("conditional", "304, one prompt", atLeast(0.6, 0.7), thousand, (harness) =>
    startService(harness).then((server) => withEtags(server, onePrompt))
  ),
  bareScenario("conditional", "304, 1,000 prompts", atLeast(0.6, 0.7), thousand, (harness) =>
    startService(harness).then((server) => withEtags(server, thousandPrompts))
  ),
  bareScenario("list", "List, hot, first page", atLeast(0.55, 0.7), hundredThousand, () =>
    makeStream(hundredThousand, [page(1)])
  ),
  bareScenario("list", "List, hot, a deep page", atLeast(0.55, 0.7), hundredThousand, () =>
    makeStream(hundredThousand, [page(lastPage(hundredThousand, 20) >> 1)])
  ),
  bareScenario("list", "Versions, hot", atLeast(0.55, 0.7), thousand, () =>
    makeStream(thousand, [`${prompt(thousand, 1)}/versions`])
  ),
  rejection,
  uncachedScenario("cold", "Resolved read, cold, 100,000 prompts", atLeast(1.5, 2.2), hundredThousand, () =>
    shuffledPrompts(hundredThousand, resolved)
  ),
  uncachedScenario(
    "pages",
    "Another list page each time, 100,000 prompts",
    atLeast(4, 8),
    hundredThousand,
    () => shuffledPages(hundredThousand)
  ),
  flood,
  slowest,
  start,
  memory,
  sequential,
  resolution,
  millionPrompts
]
