import { deepStrictEqual } from "node:assert/strict"
import { setTimeout } from "node:timers/promises"
import type { PromptId } from "../src/domain/Prompt.ts"
import { type ResolutionSource, resolve } from "../src/domain/Resolution.ts"
import { freePort } from "../test/support/ports.ts"
import { exchange, headerOf, type RawAnswer, rawRequest } from "../test/support/rawHttp.ts"
import type { Answer } from "./baselines/bare.ts"
import { hundredThousand, idOf, listed, million, thousand, type Workspace } from "./dataset.ts"
import { median, quantile, type Stream } from "./load.ts"
import { atLeast, atMost, type Goal, type Measurement } from "./measurement.ts"
import type { ServerProcess, Start } from "./processes.ts"
import { alternate, detailOf, latency, perSecond, type Rounds, ratios, type Stage } from "./stage.ts"

/** What is measured together; rows of one group are chosen together. */
export interface Row {
  readonly group: string
  readonly title: string
  readonly workspaces: ReadonlyArray<Workspace>
  readonly measure: (stage: Stage) => Promise<ReadonlyArray<Measurement>>
}

// ---- requests

const connections = 32

const prompt = (workspace: Workspace, index: number): string =>
  `/api/v1/prompts/${idOf(workspace, "prompt", index)}`
const resolved = (workspace: Workspace, index: number): string => `${prompt(workspace, index)}/resolved`
const page = (number: number, perPage = 20): string => `/api/v1/prompts?page=${number}&per_page=${perPage}`
const lastPage = (workspace: Workspace, perPage: number): number => Math.ceil(listed(workspace) / perPage)

const numbers = (count: number): ReadonlyArray<number> => Array.from({ length: count }, (_, i) => i + 1)

/** Each item once, in an order that neither table nor list has, and the same each time. */
const shuffled = <A>(items: ReadonlyArray<A>): ReadonlyArray<A> => {
  const step = 1_000_003 // a prime that none of the lengths here is a multiple of
  return items.map((_, i) => items[(i * step) % items.length]!)
}

const stream = (
  workspace: Workspace,
  targets: ReadonlyArray<string>,
  over: Partial<Stream> = {}
): Stream => ({
  connections,
  targets,
  order: "at random",
  key: workspace.key,
  expect: 200,
  ...over
})

/** Every target once. */
const eachOnce = (requests: Stream): Stream => ({
  ...requests,
  order: "in turn",
  maxRequests: requests.targets.length
})

const onePrompt = stream(thousand, [resolved(thousand, 1)])
const thousandPrompts = stream(
  thousand,
  numbers(1000).map((i) => resolved(thousand, i))
)

/** For each round requests that no other round has, and some to warm up with that no round has. */
const newEachRound = (stage: Stage, workspace: Workspace, targets: ReadonlyArray<string>) => {
  const size = Math.floor(targets.length / (stage.scale.rounds + 1))
  const slice = (index: number) => [
    eachOnce(stream(workspace, targets.slice(index * size, (index + 1) * size)))
  ]
  return { streams: (round: number) => slice(round + 1), warmUp: slice(0) }
}

// ---- servers

const noLimits = { RATE_LIMIT_PER_KEY: "2000000000", RATE_LIMIT_PER_PROCESS: "2000000000" }
const probe = { target: resolved(thousand, 1), key: thousand.key, expect: 200 }

const serviceStart = async ({ dataset }: Stage, env: Record<string, string> = {}): Promise<Start> => ({
  program: "service",
  env: {
    DATABASE_URL: dataset.url,
    METRICS_PORT: String(await freePort()),
    LOG_FORMAT: "json",
    LOG_LEVEL: "Error",
    ...noLimits,
    ...env
  },
  probe
})

const byHandStart = ({ dataset }: Stage): Start => ({
  program: "by hand",
  env: { DATABASE_URL: dataset.url, ...noLimits },
  probe
})

const service = (stage: Stage) => stage.shared("service", () => serviceStart(stage))
const byHand = (stage: Stage) => stage.shared("by hand", async () => byHandStart(stage))

// ---- correctness, before anything is measured

const ask = (server: ServerProcess, { key, targets, etags }: Stream, index = 0): Promise<RawAnswer> =>
  exchange(
    server.port,
    rawRequest(targets[index]!, [
      `Authorization: Bearer ${key === "unknown" ? `key_live_${"0".repeat(64)}` : key}`,
      ...(etags === undefined ? [] : [`If-None-Match: ${etags[index]}`])
    ])
  )

/** Headers that tell of the moment or the connection, not of the answer. */
const passing = ["date", "connection", "keep-alive", "x-request-id", "content-length"]

const lasting = ({ status, headers, body }: RawAnswer) => ({
  status,
  headers: Object.fromEntries(headers.filter(([name]) => !passing.includes(name))),
  body
})

/** Fails unless the service answers as it should, and exactly as what is written by hand does. */
const check = async (stage: Stage, server: ServerProcess, requests: Stream): Promise<void> => {
  const baseline = await byHand(stage)
  const last = requests.targets.length - 1
  for (const index of new Set([0, last >> 1, last])) {
    const answer = lasting(await ask(server, requests, index))
    deepStrictEqual(answer.status, requests.expect, `${requests.targets[index]} answered ${answer.status}`)
    deepStrictEqual(
      answer,
      lasting(await ask(baseline, requests, index)),
      `${requests.targets[index]} differs by hand`
    )
  }
}

// ---- against the bare server

/** Rounds of the same requests on a server and on a bare one that writes what that answers to the first of them. */
const againstBare = async (stage: Stage, server: ServerProcess, requests: Stream): Promise<Rounds> => {
  const { status, headers, body } = await ask(server, requests)
  const answer: Answer = {
    status,
    headers: Object.fromEntries(
      headers.filter(([name]) => !["date", "connection", "keep-alive"].includes(name))
    ),
    body
  }
  const bare = await stage.start({
    program: "bare",
    env: {},
    stdin: JSON.stringify(answer),
    probe: { ...probe, expect: status }
  })
  const { port } = server
  // Whatever the service could know by now, it does.
  await stage.generator.run({ port, seconds: 60, streams: [eachOnce(requests)] })
  const side = { streams: () => [requests], warmUp: [requests] }
  const rounds = await alternate(stage, { port, ...side }, { port: bare.port, ...side })
  await bare.stop()
  return rounds
}

const shareOfBare = (title: string, goal: Goal, rounds: Rounds): Measurement => ({
  title,
  unit: "of bare",
  goal,
  samples: ratios(rounds, perSecond()),
  detail: detailOf(rounds, ["service", "bare"])
})

/** A row of the shared service against the bare server. */
const bareRow = (
  group: string,
  title: string,
  goal: Goal,
  workspace: Workspace,
  make: (stage: Stage) => Promise<Stream> | Stream
): Row => ({
  group,
  title,
  workspaces: [thousand, workspace],
  measure: async (stage) => {
    const server = await service(stage)
    const requests = await make(stage)
    await check(stage, server, requests)
    return [shareOfBare(title, goal, await againstBare(stage, server, requests))]
  }
})

const hotOne: Row = {
  group: "hot",
  title: "Resolved read, hot, one prompt",
  workspaces: [thousand],
  measure: async (stage) => {
    const server = await service(stage)
    await check(stage, server, onePrompt)
    const rounds = await againstBare(stage, server, onePrompt)
    return [
      shareOfBare(hotOne.title, atLeast(0.6, 0.75), rounds),
      {
        title: "p99 of the resolved read, hot, one prompt",
        unit: "of bare's p99",
        goal: atMost(2, 1.5),
        samples: ratios(rounds, latency(0.99))
      }
    ]
  }
}

const log: Row = {
  group: "log",
  title: "Resolved read with log lines",
  workspaces: [thousand],
  measure: async (stage) => {
    const server = await stage.start({ ...(await serviceStart(stage, { LOG_LEVEL: "Info" })), silent: true })
    const goal = atLeast(0.45, 0.6)
    const rows: Array<Measurement> = []
    for (const [name, requests] of [
      ["one prompt", onePrompt],
      ["1,000 prompts", thousandPrompts]
    ] as const) {
      await check(stage, server, requests)
      rows.push(shareOfBare(`${log.title}, ${name}`, goal, await againstBare(stage, server, requests)))
    }
    await server.stop()
    return rows
  }
}

/** The same requests again, each with the tag that it was answered with. */
const again = async (stage: Stage, requests: Stream): Promise<Stream> => {
  const server = await service(stage)
  const etags: Array<string> = []
  for (const index of requests.targets.keys())
    etags.push(headerOf(await ask(server, requests, index), "etag")!)
  return { ...requests, etags, expect: 304 }
}

const rejection: Row = {
  group: "rejection",
  title: "429, a key over its limit",
  workspaces: [thousand],
  measure: async (stage) => {
    const server = await stage.start(await serviceStart(stage, { RATE_LIMIT_PER_KEY: "1" }))
    const requests: Stream = { ...onePrompt, expect: 429, rarely: 200 }
    await ask(server, requests)
    const { status, body } = await ask(server, requests)
    const error = { code: "RATE_LIMITED", message: "Rate limit exceeded" }
    deepStrictEqual({ status, body: JSON.parse(body) }, { status: 429, body: { error } })
    const rounds = await againstBare(stage, server, requests)
    await server.stop()
    return [shareOfBare(rejection.title, atLeast(0.5, 0.7), rounds)]
  }
}

// ---- against what is written by hand

/** A row whose requests are new each time, on the shared service and on the baseline. */
const newEachTime = (
  group: string,
  title: string,
  goal: Goal,
  workspace: Workspace,
  targets: () => ReadonlyArray<string>
): Row => ({
  group,
  title,
  workspaces: [thousand, workspace],
  measure: async (stage) => {
    const [server, baseline] = [await service(stage), await byHand(stage)]
    const requests = newEachRound(stage, workspace, targets())
    await check(stage, server, requests.warmUp[0]!)
    const rounds = await alternate(
      stage,
      { port: server.port, ...requests },
      { port: baseline.port, ...requests }
    )
    const detail = detailOf(rounds, ["service", "by hand"])
    return [{ title, unit: "of by hand", goal, samples: ratios(rounds, perSecond()), detail }]
  }
})

const flood: Row = {
  group: "flood",
  title: "A flood of unknown keys",
  workspaces: [thousand],
  measure: async (stage) => {
    const [server, baseline] = [await service(stage), await byHand(stage)]
    const unknown: Stream = { ...onePrompt, key: "unknown", expect: 401 }
    const streams = [unknown, { ...onePrompt, connections: 4 }]
    for (const requests of streams) await check(stage, server, requests)
    const side = { streams: () => streams, warmUp: streams }
    const rounds = await alternate(stage, { port: server.port, ...side }, { port: baseline.port, ...side })
    return [
      {
        title: flood.title,
        unit: "of by hand",
        goal: atLeast(1.3, 2),
        samples: ratios(rounds, perSecond(0)),
        detail: detailOf(rounds, ["service", "by hand"], 0)
      },
      {
        title: "p99 of a good key meanwhile",
        unit: "of by hand's p99",
        goal: atMost(0.3, 0.1),
        samples: ratios(rounds, latency(0.99, 1)),
        detail: detailOf(rounds, ["service", "by hand"], 1)
      }
    ]
  }
}

const start: Row = {
  group: "start",
  title: "Start to the first 200",
  workspaces: [thousand],
  measure: async (stage) => {
    const took = async (start: Start): Promise<number> => {
      const server = await stage.start(start)
      await server.stop()
      return server.startTook
    }
    const pairs: Array<readonly [number, number]> = []
    await took(await serviceStart(stage)) // what is compiled is kept from one start to the next
    for (let i = 0; i < stage.scale.starts; i++)
      pairs.push([await took(await serviceStart(stage)), await took(byHandStart(stage))])
    return [
      {
        title: start.title,
        unit: "of by hand's time",
        goal: atMost(4, 3),
        samples: pairs.map(([a, b]) => a / b),
        detail: {
          "service ms": median(pairs.map(([a]) => a)),
          "by hand ms": median(pairs.map(([, b]) => b))
        }
      }
    ]
  }
}

// ---- against itself

const slowest: Row = {
  group: "slowest",
  title: "Slowest page of 100,000 prompts, first time",
  workspaces: [thousand, hundredThousand],
  measure: async (stage) => {
    const server = await stage.start(await serviceStart(stage))
    const depths = [0, 0.001, 0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 1]
    /** Each repetition has another length of page, so that each of its pages is read for the first time. */
    const repetition = async (perPage: number): Promise<ReadonlyArray<number>> => {
      const last = lastPage(hundredThousand, perPage)
      const targets = depths.map((depth) => page(1 + Math.round(depth * (last - 1)), perPage))
      const requests = eachOnce({ ...stream(hundredThousand, targets), connections: 1 })
      const { streams } = await stage.generator.run({ port: server.port, seconds: 60, streams: [requests] })
      return [...streams[0]!.latencies]
    }
    for (let i = 0; i < 10; i++) await repetition(80 + i)
    const times: Array<ReadonlyArray<number>> = []
    for (let i = 0; i < 5 * stage.scale.rounds; i++) times.push(await repetition(30 + i))
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

const millionPrompts: Row = {
  group: "million",
  title: "Page 1 of 1,000,000 prompts, hot",
  workspaces: [thousand, million],
  measure: async (stage) => {
    const server = await service(stage)
    const [large, small] = [stream(million, [page(1)]), stream(thousand, [page(1)])]
    for (const requests of [large, small]) await check(stage, server, requests)
    const side = (requests: Stream) => ({ port: server.port, streams: () => [requests], warmUp: [requests] })
    const rounds = await alternate(stage, side(large), side(small))
    return [
      {
        title: millionPrompts.title,
        unit: "of the time of 1,000 prompts",
        goal: atMost(1.25, 1.1),
        samples: ratios(rounds, perSecond()).map((ratio) => 1 / ratio),
        detail: detailOf(rounds, ["1,000,000", "1,000"])
      }
    ]
  }
}

// ---- memory

/** Reads of every kind that a workspace's key makes, those of the same thing again in the majority. */
const mixed = (): ReadonlyArray<string> => [
  ...numbers(1000).flatMap((i) => Array<string>(20).fill(resolved(hundredThousand, i))),
  ...shuffled(numbers(100_000))
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

const memory: Row = {
  group: "memory",
  title: "Resident memory",
  workspaces: [thousand, hundredThousand],
  measure: async (stage) => {
    const { coldReads, mixedRequests } = stage.scale
    const server = await stage.start(await serviceStart(stage))
    const { port } = server
    const send = async (streams: ReadonlyArray<Stream>) => {
      const { streams: sent } = await stage.generator.run({ port, seconds: 1800, streams })
      return sent.reduce((sum, { latencies }) => sum + latencies.length, 0)
    }
    const row = async (title: string, bound: number, aim: number): Promise<Measurement> => ({
      title: `${memory.title} ${title}`,
      unit: "MiB",
      goal: atMost(bound, aim),
      samples: [await server.memory()]
    })
    const count = (value: number) => value.toLocaleString("en")
    await setTimeout(1000)
    const rows = [await row("at the start", 170, 140)]
    const cold = shuffled(numbers(100_000)).slice(0, coldReads)
    const read = await send([
      eachOnce(
        stream(
          hundredThousand,
          cold.map((i) => resolved(hundredThousand, i))
        )
      )
    ])
    rows.push(await row(`after ${count(read)} cold reads`, 400, 300))
    const strangers = Math.floor(mixedRequests / 20)
    const sent = await send([
      stream(hundredThousand, mixed(), { maxRequests: mixedRequests - strangers, connections: 28 }),
      { ...onePrompt, key: "unknown", expect: 401, maxRequests: strangers, connections: 4 }
    ])
    rows.push(await row(`after ${count(sent)} mixed requests`, 450, 350))
    await server.stop()
    return rows
  }
}

// ---- to be looked at

const sequential: Row = {
  group: "sequential",
  title: "1,000 sequential reads",
  workspaces: [thousand, hundredThousand],
  measure: async (stage) => {
    const server = await stage.start(await serviceStart(stage))
    const targets = numbers(1000).map((i) => resolved(hundredThousand, i))
    const requests = eachOnce({ ...stream(hundredThousand, targets), connections: 1 })
    const row = async (title: string, { port }: ServerProcess): Promise<Measurement> => {
      const { streams } = await stage.generator.run({ port, seconds: 60, streams: [requests] })
      const { latencies } = streams[0]!
      const [p50, p99] = [quantile(latencies, 0.5), quantile(latencies, 0.99)]
      return {
        title: `${sequential.title}, ${title}`,
        unit: "ms, p50",
        samples: [p50],
        detail: { "p99 ms": p99 }
      }
    }
    const warm = stream(
      thousand,
      numbers(1000).map((i) => resolved(thousand, i))
    )
    for (const { port } of [server, await byHand(stage)])
      await stage.generator.run({ port, seconds: 60, streams: [eachOnce(warm)] })
    const rows = [
      await row("first time", server),
      await row("again", server),
      await row("by hand", await byHand(stage))
    ]
    await server.stop()
    return rows
  }
}

const KiB = 1024

/** A prompt whose one fragment measures `size` bytes, with a slot in each hundred of them. */
const sourceOf = (size: number): ResolutionSource => ({
  id: idOf(thousand, "prompt", 1) as PromptId,
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

const resolution: Row = {
  group: "resolution",
  title: "Resolution",
  workspaces: [],
  measure: async ({ scale }) => {
    const sizes = [1, 16, 256, 4096].map((size) => size * KiB)
    const rateOf = (source: ResolutionSource, size: number): number => {
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
      const source = sourceOf(size)
      rateOf(source, size)
      return numbers(scale.rounds).map(() => rateOf(source, size))
    })
    const rows = sizes.map((size, i) => ({
      title: `${resolution.title} of ${size / KiB} KiB`,
      unit: "MB/s",
      samples: rates[i]!
    }))
    const linear = rates.at(-1)!.map((rate) => rate / median(rates[1]!))
    return [...rows, { title: "Linear: 4 MiB", unit: "of the rate at 16 KiB", samples: linear }]
  }
}

/** Every row, in the order in which they are measured; the largest workspace is loaded last. */
export const rows: ReadonlyArray<Row> = [
  hotOne,
  bareRow("hot", "Resolved read, hot, 1,000 prompts", atLeast(0.6, 0.75), thousand, () => thousandPrompts),
  log,
  bareRow("conditional", "304, one prompt", atLeast(0.6, 0.7), thousand, (stage) => again(stage, onePrompt)),
  bareRow("conditional", "304, 1,000 prompts", atLeast(0.6, 0.7), thousand, (stage) =>
    again(stage, thousandPrompts)
  ),
  bareRow("list", "List, hot, first page", atLeast(0.55, 0.7), hundredThousand, () =>
    stream(hundredThousand, [page(1)])
  ),
  bareRow("list", "List, hot, a deep page", atLeast(0.55, 0.7), hundredThousand, () =>
    stream(hundredThousand, [page(lastPage(hundredThousand, 20) >> 1)])
  ),
  bareRow("list", "Versions, hot", atLeast(0.55, 0.7), thousand, () =>
    stream(thousand, [`${prompt(thousand, 1)}/versions`])
  ),
  rejection,
  newEachTime("cold", "Resolved read, cold, 100,000 prompts", atLeast(1.5, 2.2), hundredThousand, () =>
    shuffled(numbers(100_000)).map((i) => resolved(hundredThousand, i))
  ),
  newEachTime("pages", "Another list page each time, 100,000 prompts", atLeast(4, 8), hundredThousand, () =>
    shuffled(
      numbers(10).flatMap((i) =>
        numbers(lastPage(hundredThousand, 19 + i)).map((number) => page(number, 19 + i))
      )
    )
  ),
  flood,
  slowest,
  start,
  memory,
  sequential,
  resolution,
  millionPrompts
]
