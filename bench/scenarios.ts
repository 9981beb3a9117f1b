import { deepStrictEqual } from "node:assert/strict"
import { setTimeout } from "node:timers/promises"
import type { PromptId } from "../src/domain/Prompt.ts"
import { toSlug } from "../src/domain/PromptNames.ts"
import { fillSlots, findSlots, type ResolutionSource, resolve } from "../src/domain/Resolution.ts"
import { call as callMcp } from "../test/support/mcp.ts"
import {
  assertSameAsBaseline,
  bareScenario,
  compareWithBare,
  fastifyBaseline,
  makeBaselineStart,
  p99,
  type Scenario,
  startService,
  toBareRatio,
  uncachedScenario
} from "./comparisons.ts"
import { hundredThousand, makeId, million, thousand } from "./dataset.ts"
import { alternate, latency, perSecond, ratios, summarize } from "./harness.ts"
import { importScenario } from "./importScenario.ts"
import { median, quantile, type Stream } from "./load.ts"
import { loneCaller } from "./loneCaller.ts"
import { atLeast, atMost, type Measurement } from "./measurement.ts"
import { mixes } from "./mix.ts"
import { makeServiceStart, type ServerProcess, type Start } from "./processes.ts"
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
  thousandPrompts,
  unknownKeys,
  withEtags
} from "./requests.ts"

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
      toBareRatio(hotSinglePrompt.title, atLeast(0.6, 0.75), rounds),
      toBareRatio("p99 of the resolved read, hot, one prompt", atMost(1.8, 1.3), rounds, p99)
    ]
  }
}

/** Compares `prompts/get` of the Model Context Protocol with the same read over the HTTP API. */
const mcpPrompt: Scenario = {
  group: "mcp",
  title: "prompts/get, hot, one prompt",
  workspaces: [thousand],
  measure: async (harness) => {
    const server = await harness.start(await makeServiceStart(harness.dataset.url, { MCP: "on" }))
    const { data } = JSON.parse((await send(server, onePrompt)).body)
    const slots = findSlots(data.resolved_content)
    const values = Object.fromEntries(Array.from(slots, (slot) => [slot, "value"]))
    const name = `${toSlug(data.title)}-${data.id.replaceAll("-", "")}`
    const params = { name, arguments: values }
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "prompts/get", params })
    const getPrompt = makeStream(thousand, ["/mcp"], { body })
    const { port } = server
    // The text is that of the read, with the slots filled.
    const { result } = await callMcp(
      { url: `http://127.0.0.1:${port}` },
      thousand.key,
      "prompts/get",
      params
    ).then(({ body }) => body)
    deepStrictEqual(result.messages[0].content.text, fillSlots(data.resolved_content, values))
    const { seconds, rounds } = harness.scale
    /** Returns the CPU time of the service per request, in microseconds. */
    const measureCost = async (requests: Stream): Promise<number> => {
      const start = server.cpuTime()
      const { streams } = await harness.generator.run({ port, seconds, streams: [requests] })
      return ((server.cpuTime() - start) * 1e6) / streams[0]!.latencies.length
    }
    const costs: Array<readonly [get: number, read: number]> = []
    for (const requests of [getPrompt, onePrompt]) await measureCost(requests)
    for (let round = 0; round < rounds; round++)
      costs.push([await measureCost(getPrompt), await measureCost(onePrompt)])
    return [
      {
        title: mcpPrompt.title,
        unit: "of the CPU time of the resolved read",
        goal: atMost(2, 1.8),
        samples: costs.map(([get, read]) => get / read),
        detail: {
          "prompts/get µs": median(costs.map(([get]) => get)),
          "resolved read µs": median(costs.map(([, read]) => read))
        }
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

/** Prompts that no request has read before, because the probe of a start reads another one. */
const firstPrompts = { targets: thousandPrompts.targets.slice(1, 101) }

const start: Scenario = {
  group: "start",
  title: "Start to the first 200",
  workspaces: [thousand],
  measure: async (harness) => {
    const firstRequests = eachOnce({ ...thousandPrompts, ...firstPrompts, connections: 1 })
    const measureStart = async (start: Start) => {
      const server = await harness.start(start)
      const { port, startDuration } = server
      const { streams } = await harness.generator.run({ port, seconds: 60, streams: [firstRequests] })
      await server.stop()
      return { startDuration, p99: quantile(streams[0]!.latencies, 0.99) }
    }
    type Measured = Awaited<ReturnType<typeof measureStart>>
    const pairs: Array<readonly [Measured, Measured]> = []
    await measureStart(await makeServiceStart(harness.dataset.url)) // fills Node's compile cache, which the other starts use
    for (let i = 0; i < harness.scale.starts; i++)
      pairs.push([
        await measureStart(await makeServiceStart(harness.dataset.url)),
        await measureStart(makeBaselineStart(harness))
      ])
    const toMedians = (value: (measured: Measured) => number) => ({
      "service ms": median(pairs.map(([service]) => value(service))),
      "fastify ms": median(pairs.map(([, baseline]) => value(baseline)))
    })
    return [
      {
        title: start.title,
        unit: "of Fastify's time",
        goal: atMost(4, 3),
        samples: pairs.map(([service, baseline]) => service.startDuration / baseline.startDuration),
        detail: toMedians(({ startDuration }) => startDuration)
      },
      {
        title: "p99 of the first 100 requests after it",
        unit: "of Fastify's p99",
        goal: atMost(1, 0.7),
        samples: pairs.map(([service, baseline]) => service.p99 / baseline.p99),
        detail: toMedians(({ p99 }) => p99)
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
    const measurements = [await measureMemory("at the start", 130, 110)]
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
    atLeast(0.7, 0.8),
    thousand,
    () => thousandPrompts
  ),
  mcpPrompt,
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
  ...loneCaller,
  ...mixes,
  uncachedScenario("cold", "Resolved read, cold, 100,000 prompts", atLeast(2.2, 3), hundredThousand, () =>
    makeStream(hundredThousand, shuffledPrompts(hundredThousand, resolved))
  ),
  uncachedScenario(
    "pages",
    "Another list page each time, 100,000 prompts",
    atLeast(4, 8),
    hundredThousand,
    () => makeStream(hundredThousand, shuffledPages(hundredThousand))
  ),
  flood,
  slowest,
  start,
  memory,
  importScenario,
  sequential,
  resolution,
  millionPrompts
]
