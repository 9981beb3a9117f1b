/**
 * Lets 2,000 applications with the TypeScript client read from one service, kills the service, and starts it again with
 * empty caches. In the scenario `warm`, the applications have texts in their caches when the outage begins. In `cold`,
 * the applications start one after another in the first five sixths of the outage.
 */
import { once } from "node:events"
import { setPriority } from "node:os"
import { monitorEventLoopDelay } from "node:perf_hooks"
import { setTimeout } from "node:timers/promises"
import { PromptClient } from "../../client/src/index.ts"
import { defaultRateLimits } from "../../src/application/Admission.ts"
import { key, prompt, sample } from "../../test/support/archives.ts"
import { connectTo, postgresEnv } from "../../test/support/database/connection.ts"
import { freePort } from "../../test/support/network/ports.ts"
import { acquireService, type Run } from "./run.ts"

const clientCount = 2_000
/** How long a client returns a cached text without a request, and the pause between its reads, in milliseconds. */
const [ttl, readInterval] = [30_000, 2_000]
/**
 * The number of clients that share a key. In normal operation, these clients send less than half of the requests that
 * the key's limit allows.
 */
const clientsPerKey = 20
/** The maximum delay of the event loop of this process, in milliseconds. A longer delay makes the result invalid. */
const maxGeneratorDelay = 500
const maxRatio = 2

/** A request, and the status of its response. The status is undefined if the service was not available. */
interface Exchange {
  readonly application: number
  readonly sentAt: number
  receivedAt: number
  status: number | undefined
}

const isSuccess = ({ status }: Exchange): boolean => status === 200 || status === 304

/** Returns the highest number of requests that were sent within `window` milliseconds. */
const countPeak = (exchanges: ReadonlyArray<Exchange>, window: number): number => {
  const times = exchanges.map(({ sentAt }) => sentAt).toSorted((a, b) => a - b)
  let most = 0
  for (let first = 0, end = 0; first < times.length; first++) {
    while (end < times.length && times[end]! < times[first]! + window) end++
    most = Math.max(most, end - first)
  }
  return most
}

interface Application {
  readonly apiKey: string
  readonly prompt: string
  readonly startsAt: number
}

/** Runs applications until the returned function is called. Times are values of `Date.now`. */
const runApplications = (baseUrl: string, applications: ReadonlyArray<Application>, maxStale: number) => {
  const stopping = new AbortController()
  const exchanges: Array<Exchange> = []
  const failures = { failedReads: 0, needlessFallbacks: 0 }
  const run = async ({ apiKey, prompt, startsAt }: Application, application: number) => {
    let hasText = false
    const client = new PromptClient({
      apiKey,
      baseUrl,
      cache: { ttl, maxStale },
      fetch: async (url, init) => {
        const exchange: Exchange = { application, sentAt: Date.now(), receivedAt: 0, status: undefined }
        exchanges.push(exchange)
        const response = await fetch(url, init)
        exchange.receivedAt = Date.now()
        exchange.status = response.status
        return response
      }
    })
    const read = async () => {
      try {
        const { source } = await client.prompts.getResolved(prompt, { fallback: "fallback" })
        if (source !== "fallback") hasText = true
        else if (hasText) failures.needlessFallbacks++
      } catch {
        failures.failedReads++
      }
    }
    for (let readAt = startsAt; !stopping.signal.aborted; readAt += readInterval) {
      await setTimeout(Math.max(0, readAt - Date.now()), undefined, { signal: stopping.signal })
      void read()
    }
  }
  const delays = monitorEventLoopDelay({ resolution: 10 })
  delays.enable()
  const ended = Promise.allSettled(applications.map(run))
  return async () => {
    stopping.abort()
    await ended
    return { exchanges, ...failures, maxDelay: delays.max / 1_000_000 }
  }
}

const runScenario = async (run: Run, name: "warm" | "cold"): Promise<void> => {
  const { acquire } = run
  const outage = run.seconds * 1_000
  const { archive } = sample()
  const keys = Array.from({ length: clientCount / clientsPerKey }, () =>
    key(archive.workspace.id, archive.users[0]!)
  )
  // Each application reads its own prompt, so that the restarted service finds no prompt in its cache.
  const prompts = Array.from({ length: clientCount }, (_, index) =>
    prompt({ title: `Prompt ${index}`, current_content: "A text for {{shop}}. ".repeat(100) })
  )
  const env = { ...(await acquire(postgresEnv)), PORT: String(await freePort()), LOG_LEVEL: "Warn" }
  const { process: first, url } = await acquireService(run, env)
  const kill = () => {
    first.kill("SIGKILL")
    return once(first, "exit")
  }
  await (await acquire(connectTo(env))).importArchive({
    ...archive,
    prompts: [...archive.prompts, ...prompts],
    api_keys: [...archive.api_keys, ...keys.map(({ stored }) => stored)]
  })
  if (name === "cold") await kill()

  const startsAt = Date.now() + 2_000
  const startPeriod = name === "warm" ? ttl : (outage * 5) / 6
  const applications = prompts.map(({ id }, index) => ({
    apiKey: keys[index % keys.length]!.plaintext,
    prompt: id,
    startsAt: startsAt + (index / clientCount) * startPeriod
  }))
  const stop = runApplications(url, applications, outage + 10 * ttl)
  const outageStart = name === "warm" ? startsAt + 2 * ttl + readInterval : startsAt
  await setTimeout(outageStart - Date.now())
  if (name === "warm") await kill()
  const restartedAt = outageStart + outage
  await setTimeout(restartedAt - Date.now())
  const service = await acquireService(run, env)
  const readyAt = Date.now()
  await setTimeout(2 * ttl + readInterval)
  const { exchanges, failedReads, needlessFallbacks, maxDelay } = await stop()
  await service.stop()

  const since = (from: number, until = Number.POSITIVE_INFINITY) =>
    exchanges.filter(({ sentAt }) => sentAt >= from && sentAt < until)
  const steadyStart = name === "warm" ? outageStart - ttl : readyAt + ttl + readInterval
  const steadyRate = since(steadyStart, steadyStart + ttl).length / (ttl / 1_000)
  const answered = exchanges.filter(({ status }) => status !== undefined)
  const peakRate = countPeak(
    answered.filter(({ sentAt }) => sentAt >= restartedAt),
    1_000
  )
  const freshAt = new Map<number, number>()
  for (const exchange of since(restartedAt).filter(isSuccess))
    if (!freshAt.has(exchange.application)) freshAt.set(exchange.application, exchange.receivedAt)
  const freshAfter = Math.max(...freshAt.values()) - readyAt
  const byKey = Map.groupBy(answered, ({ application }) => application % keys.length)
  const requestsOfKey = Math.max(...[...byKey.values()].map((sent) => countPeak(sent, 60_000)))
  console.log({
    name,
    steadyRate,
    peakRate,
    startUpMs: readyAt - restartedAt,
    freshAfter,
    requestsOfKey,
    maxDelay
  })

  const check = (holds: boolean, problem: string) => run.check(holds, `${name}: ${problem}`)
  check(maxDelay <= maxGeneratorDelay, `the applications were late by ${maxDelay} ms: the result is invalid`)
  check(peakRate <= maxRatio * steadyRate, `a peak of ${peakRate} per second, ${steadyRate} when steady`)
  check(freshAt.size === clientCount && freshAfter <= ttl, "an application had no fresh text after one ttl")
  check(
    requestsOfKey <= defaultRateLimits.perKey && answered.every(({ status }) => status !== 429),
    "a key exceeded its limit"
  )
  check(since(readyAt).every(isSuccess), "a request failed although the service was ready")
  check(failedReads === 0, `${failedReads} reads failed`)
  check(needlessFallbacks === 0, `${needlessFallbacks} reads returned the fallback instead of a cached text`)
}

export const herd = async (run: Run): Promise<void> => {
  try {
    // The applications simulate other machines, so other work on this machine should not delay them.
    setPriority(-10)
  } catch {
    // Only a privileged user may raise the priority. The run also measures the delay without this priority.
  }
  for (const name of ["warm", "cold"] as const) await runScenario(run, name)
}
