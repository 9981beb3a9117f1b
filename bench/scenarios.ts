import { deepStrictEqual } from "node:assert/strict"
import { setTimeout } from "node:timers/promises"
import { runCommand } from "./command.ts"
import {
  assertSameAsBaseline,
  bareScenario,
  compareWithBare,
  fastifyBaseline,
  makeBaselineStart,
  p50,
  p99,
  type Scenario,
  startService,
  throughput,
  toRatios,
  uncachedScenario
} from "./comparisons.ts"
import { hundredThousand, makeId, makeKey, thousand, type Workspace } from "./dataset.ts"
import { alternate } from "./harness.ts"
import { importScenario } from "./import.ts"
import { liveScenarios } from "./live.ts"
import { median, type Stream } from "./load.ts"
import { atLeast, atMost, type Goal, type Measurement } from "./measurement.ts"
import { makeServiceStart, type Start } from "./processes.ts"
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
import { waitScenarios } from "./waits.ts"

// ---- compared with the bare server

const hotSinglePrompt: Scenario = {
  group: "hot",
  title: "Resolved read, hot, one prompt",
  workspaces: [thousand],
  measure: async (harness) => {
    const server = await startService(harness)
    await assertSameAsBaseline(harness, server, onePrompt)
    const rounds = await compareWithBare(harness, server, onePrompt)
    return [
      toRatios(hotSinglePrompt.title, atLeast(0.75, 0.85), rounds, "bare"),
      toRatios("p99 of the resolved read, hot, one prompt", atMost(1.8, 1.3), rounds, "bare", p99)
    ]
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
    return [toRatios(rejection.title, atLeast(0.5, 0.7), rounds, "bare")]
  }
}

// ---- compared with the Fastify baseline

const flood: Scenario = {
  group: "flood",
  title: "A flood of unknown keys",
  workspaces: [thousand],
  measure: async (harness) => {
    const [server, baseline] = [await startService(harness), await fastifyBaseline(harness)]
    const streams = [unknownKeys, { ...onePrompt, connections: 4 }]
    for (const requests of streams) await assertSameAsBaseline(harness, server, requests)
    const side = { streams: () => streams, warmUp: () => streams }
    const rounds = await alternate(harness, { server, ...side }, { server: baseline, ...side })
    return [
      toRatios(flood.title, atLeast(1.8, 2.5), rounds, "Fastify"),
      toRatios("p99 of a good key meanwhile", atMost(0.3, 0.1), rounds, "Fastify", p99, 1)
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
    const startService = async () => measureStart(await makeServiceStart(harness.dataset.url))
    await startService() // fills Node's compile cache, which the other starts use
    const pairs: Array<readonly [service: number, baseline: number]> = []
    for (let i = 0; i < harness.scale.starts; i++)
      pairs.push([await startService(), await measureStart(makeBaselineStart(harness))])
    return [
      {
        title: start.title,
        unit: "of Fastify's time",
        goal: atMost(1.1, 1),
        samples: pairs.map(([service, baseline]) => service / baseline),
        detail: {
          "service ms": median(pairs.map(([service]) => service)),
          "fastify ms": median(pairs.map(([, baseline]) => baseline))
        }
      }
    ]
  }
}

// ---- memory

/** Returns targets of every kind. Each of 1,000 resolved prompts occurs at least 20 times. */
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
    const measurements = [await measureMemory("at the start", 90, 80)]
    const cold = shuffledPrompts(hundredThousand, resolved).slice(0, coldReads)
    const coldCount = await send([eachOnce(makeStream(hundredThousand, cold))])
    measurements.push(await measureMemory(`after ${count(coldCount)} cold reads`, 270, 240))
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

// ---- the command line

const commands: Scenario = {
  group: "cli",
  title: "The command line",
  workspaces: [thousand],
  measure: async ({ dataset, scale }) => {
    const measurements: Array<Measurement> = []
    for (const [command, goal] of [
      ["--version", atMost(120, 80)],
      ["--help", atMost(200, 120)],
      [`keys list --workspace ${makeId(thousand, "workspace", 1)}`, atMost(500, 350)]
    ] as const) {
      const samples: Array<number> = []
      // The first run fills Node's compile cache.
      for (let i = 0; i <= scale.starts; i++)
        samples.push((await runCommand(command.split(" "), dataset.url)).duration)
      measurements.push({
        title: `prompt-retrieval ${command.split(" --w")[0]}`,
        unit: "ms",
        goal,
        samples: samples.slice(1)
      })
    }
    return measurements
  }
}

// ---- one caller: one connection that sends its next request when it has received the response

const oneConnection = { connections: 1 }

const promptIndices = (): ReadonlyArray<number> => shuffle(numbers(hundredThousand.prompts))

const readPrompts = (
  target: (workspace: Workspace, index: number) => string,
  overrides: Partial<Stream> = {}
): Stream =>
  makeStream(
    hundredThousand,
    promptIndices().map((index) => target(hundredThousand, index)),
    { ...oneConnection, ...overrides }
  )

const coldOneCaller = (what: string, goal: Goal, makeRequests: () => Stream): Scenario =>
  uncachedScenario("alone", `One caller: ${what}`, goal, hundredThousand, makeRequests, p50)

/** Compares reads by name with reads by id. Each side reads different prompts of the same service. */
const byName: Scenario = {
  group: "alone",
  title: "One caller: resolved read by name, cold",
  workspaces: [thousand, hundredThousand],
  measure: async (harness) => {
    const server = await startService(harness)
    const listed = promptIndices().filter((index) => index % 50 > 0)
    // Every 50th prompt is archived and has no name.
    const makeSide = (indices: ReadonlyArray<number>, target: (index: number) => string) => ({
      server,
      ...splitByRound(
        makeStream(
          hundredThousand,
          indices.map((index) => target(index)),
          oneConnection
        ),
        harness.scale.rounds
      )
    })
    const half = listed.length >> 1
    const rounds = await alternate(
      harness,
      makeSide(listed.slice(0, half), (index) => `/api/v1/prompts/prompt-${index}/resolved`),
      makeSide(listed.slice(half), (index) => resolved(hundredThousand, index))
    )
    return [toRatios(byName.title, atMost(1.25, 1.1), rounds, "reads by id", p50)]
  }
}

const oneCaller: ReadonlyArray<Scenario> = [
  bareScenario(
    "alone",
    "One caller: resolved read, hot",
    atMost(1.4, 1.2),
    thousand,
    () => ({ ...onePrompt, ...oneConnection }),
    p50
  ),
  coldOneCaller("resolved read, cold", atMost(0.8, 0.7), () => readPrompts(resolved)),
  byName,
  coldOneCaller("resolved read, a new key each time", atMost(1.25, 1), () =>
    readPrompts(resolved, { keys: promptIndices().map((index) => makeKey(hundredThousand, index)) })
  ),
  coldOneCaller("another list page each time", atMost(0.85, 0.65), () =>
    makeStream(hundredThousand, shuffledPages(hundredThousand), oneConnection)
  ),
  coldOneCaller("version, cold", atMost(0.85, 0.65), () =>
    readPrompts((...args) => `${prompt(...args)}/versions/1`)
  ),
  coldOneCaller("versions, cold", atMost(0.85, 0.65), () =>
    readPrompts((...args) => `${prompt(...args)}/versions`)
  )
]

/** Every scenario in the order of measurement. */
export const scenarios: ReadonlyArray<Scenario> = [
  hotSinglePrompt,
  bareScenario(
    "hot",
    "Resolved read, hot, 1,000 prompts",
    atLeast(0.7, 0.8),
    thousand,
    () => thousandPrompts
  ),
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
  ...oneCaller,
  uncachedScenario(
    "cold",
    "Resolved read, cold, 100,000 prompts",
    atLeast(2.3, 2.5),
    hundredThousand,
    () => makeStream(hundredThousand, shuffledPrompts(hundredThousand, resolved)),
    throughput,
    atMost(0.55, 0.5)
  ),
  uncachedScenario(
    "pages",
    "Another list page each time, 100,000 prompts",
    atLeast(7, 10),
    hundredThousand,
    () => makeStream(hundredThousand, shuffledPages(hundredThousand))
  ),
  flood,
  start,
  memory,
  ...waitScenarios,
  ...liveScenarios,
  commands,
  importScenario
]
