/** The scenarios with a mix of requests over 64 connections. */
import { setTimeout } from "node:timers/promises"
import { assertSameAsBaseline, fastifyBaseline, p99, type Scenario, startService } from "./comparisons.ts"
import { hundredThousand, thousand } from "./dataset.ts"
import { alternate, type Harness, type Rounds, ratios, summarize } from "./harness.ts"
import { openIdleConnections } from "./idleConnections.ts"
import type { Stream } from "./load.ts"
import { atMost } from "./measurement.ts"
import { makeServiceStart, type ServerProcess } from "./processes.ts"
import {
  numbers,
  onePrompt,
  resolved,
  type RoundStreams,
  shuffledPages,
  shuffledPrompts,
  splitByRound,
  thousandPrompts,
  withEtags
} from "./requests.ts"

/** The number of requests that a round sends at most. A new prompt or page is part of every 20 requests. */
const requestsPerRound = 40_000

/** What 20 requests consist of: 70 % are hot, 15 % hot with their ETag, 10 % cold and 5 % a list page. */
const kinds = [
  ..."hot hot conditional hot cold hot hot list hot conditional".split(" "),
  ..."hot hot hot cold hot hot conditional hot hot hot".split(" ")
]

interface MixedRequest {
  readonly target: string
  readonly key: string
  readonly etag: string | undefined
}

/**
 * Makes the mix. Hot requests read 1,000 prompts; cold prompts and list pages of 100,000 prompts are different in each
 * request.
 *
 * @param server sends the ETags, which are those of every server
 */
const makeMix = async (server: ServerProcess, rounds: number): Promise<RoundStreams> => {
  const { targets: hot, etags = [] } = await withEtags(server, thousandPrompts)
  const coldReads = shuffledPrompts(hundredThousand, resolved).values()
  const pages = shuffledPages(hundredThousand).values()
  const requests = numbers((rounds + 1) * requestsPerRound).map((number): MixedRequest => {
    const kind = kinds[number % kinds.length]
    if (kind === "cold" || kind === "list") {
      const target = (kind === "cold" ? coldReads : pages).next().value!
      return { target, key: hundredThousand.key, etag: undefined }
    }
    const index = (number + 7 * Math.floor(number / kinds.length)) % hot.length
    return { target: hot[index]!, key: thousand.key, etag: kind === "hot" ? undefined : etags[index] }
  })
  const stream: Stream = {
    ...onePrompt,
    connections: 64,
    targets: requests.map(({ target }) => target),
    keys: requests.map(({ key }) => key),
    etags: requests.map(({ etag }) => etag)
  }
  return splitByRound(stream, rounds)
}

const mix: Scenario = {
  group: "mix",
  title: "p99 of a mix of hot, 304, cold and list requests",
  workspaces: [thousand, hundredThousand],
  measure: async (harness) => {
    const [server, baseline] = [await startService(harness), await fastifyBaseline(harness)]
    const requests = await makeMix(server, harness.scale.rounds)
    await assertSameAsBaseline(harness, server, requests.warmUp[0]!)
    const rounds = await alternate(
      harness,
      { port: server.port, ...requests },
      { port: baseline.port, ...requests }
    )
    return [
      {
        title: mix.title,
        unit: p99.toUnit("Fastify"),
        goal: atMost(0.3, 0.15),
        samples: ratios(rounds, p99.metric),
        detail: summarize(rounds, ["service", "fastify"])
      }
    ]
  }
}

const idleConnections = 5_000

/** The server closes a connection that is idle for 70 s, so all rounds together must be shorter. */
const maxMeasuredSeconds = 50

/** Compares the mix on two services, of which the first also has idle connections. */
const compareWithIdle = async (
  harness: Harness,
  crowded: ServerProcess,
  quiet: ServerProcess
): Promise<{ readonly rounds: Rounds; readonly growthMiB: number }> => {
  const { rounds, seconds } = harness.scale
  const requests = await makeMix(quiet, rounds)
  // The heap reaches its size under load, so that what grows later is the memory of the idle connections.
  for (const { port } of [crowded, quiet])
    for (let i = 0; i < 2; i++) await harness.generator.run({ port, seconds, streams: requests.warmUp })
  const before = await crowded.memory()
  const idle = await openIdleConnections(crowded, idleConnections, onePrompt)
  try {
    await setTimeout(1000)
    const growthMiB = (await crowded.memory()) - before
    const scale = { ...harness.scale, seconds: Math.min(seconds, maxMeasuredSeconds / rounds / 2) }
    const { streams } = requests
    const results = await alternate(
      { ...harness, scale },
      { port: crowded.port, streams },
      { port: quiet.port, streams }
    )
    idle.assertOpen()
    return { rounds: results, growthMiB }
  } finally {
    idle.close()
  }
}

const idle: Scenario = {
  group: "idle",
  title: "p99 of the mix beside 5,000 idle connections",
  workspaces: [thousand, hundredThousand],
  measure: async (harness) => {
    const start = async () => harness.start(await makeServiceStart(harness.dataset.url))
    const [crowded, quiet] = [await start(), await start()]
    const { rounds, growthMiB } = await compareWithIdle(harness, crowded, quiet)
    for (const server of [crowded, quiet]) await server.stop()
    return [
      {
        title: idle.title,
        unit: "of the p99 without them",
        goal: atMost(1.2, 1.05),
        samples: ratios(rounds, p99.metric),
        detail: summarize(rounds, ["with", "without"])
      },
      {
        title: "Memory of an idle connection",
        unit: "KiB",
        goal: atMost(20, 12),
        samples: [(growthMiB * 1024) / idleConnections]
      }
    ]
  }
}

export const mixes: ReadonlyArray<Scenario> = [mix, idle]
