/**
 * Lets 2,000 applications with the TypeScript client read from one service, kills the service, and starts it again. In
 * the scenario `warm`, the applications have texts in their caches when the outage begins; in `cold`, they start
 * one after another in the first five sixths of the outage, with empty caches. The applications run in two separate
 * processes.
 *
 * The steady rate is the average over one `ttl` in which all applications have texts: before the outage in `warm`,
 * after the recovery in `cold`. The peak is the highest count of requests in a second from the restart on, including
 * those that the service refuses because it is not ready.
 *
 * Exits with 1 if the peak exceeds twice the steady rate, if an application has no fresh text within one `ttl` after
 * the service is ready, if a key exceeds its limit, if a request fails once the service is ready, if a read fails or
 * returns the fallback instead of a cached text, or if a process that runs applications was late, so that the
 * result is invalid. Needs PostgreSQL.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/herd.ts
 *         [--seconds 60] [--clients 2000] [--ttl 30000] [--scenario warm|cold]
 */
import { fork } from "node:child_process"
import { once } from "node:events"
import { join } from "node:path"
import { setTimeout } from "node:timers/promises"
import { parseArgs } from "node:util"
import { defaultRateLimits } from "../src/application/Admission.ts"
import { type Key, key, prompt, sample } from "../test/support/archives.ts"
import { connectTo, makeResources, postgres } from "../test/support/database.ts"
import { freePort } from "../test/support/ports.ts"
import { type Service, startService } from "../test/support/service.ts"
import type { Application, Assignment, Exchange, Observations } from "./herdClients.ts"

const { values } = parseArgs({
  options: {
    seconds: { type: "string", default: "60" },
    clients: { type: "string", default: "2000" },
    ttl: { type: "string", default: "30000" },
    scenario: { type: "string" }
  }
})
const clientCount = Number(values.clients)
const outage = Number(values.seconds) * 1_000
/** How long a client returns a cached text without a request, in milliseconds. */
const ttl = Number(values.ttl)
const scenarioNames = ["warm", "cold"] as const
type ScenarioName = (typeof scenarioNames)[number]
const scenarios = scenarioNames.filter((name) => values.scenario === undefined || name === values.scenario)
if (!(outage >= 1_000 && clientCount >= 1 && ttl >= 1_500 && scenarios.length > 0))
  throw new Error("--seconds, --clients or --ttl is too small, or --scenario is neither warm nor cold")

/** How often each application reads its prompt, in milliseconds. */
const readInterval = ttl / 15
/** How many clients share a key: with fresh texts, they use less than half of its limit. */
const clientsPerKey = Math.max(1, Math.floor((20 * ttl) / 30_000))
const processCount = 2
/** The longest delay of a process that runs applications for which the result is valid, in milliseconds. */
const maxGeneratorDelay = 500
const maxRatio = 2
const minute = 60_000

const isSuccess = ({ status }: Exchange): boolean => status === 200 || status === 304

/** Starts a process that runs applications. The returned function stops it and returns what it observed. */
const startApplications = (assignment: Assignment): (() => Promise<Observations>) => {
  const child = fork(join(import.meta.dirname, "herdClients.ts"))
  child.send(assignment)
  const failed = once(child, "exit").then(([code]) => {
    throw new Error(`a process that runs applications exited with code ${code}`)
  })
  failed.catch(() => {})
  return async () => {
    const reply = once(child, "message")
    if (child.connected) child.send("stop")
    const [observations] = (await Promise.race([reply, failed])) as [Observations]
    return observations
  }
}

/** Returns the highest number of times within a window of this length. The times are in ascending order. */
const countPeak = (times: ReadonlyArray<number>, window: number): number => {
  let most = 0
  for (let first = 0, end = 0; first < times.length; first++) {
    while (end < times.length && times[end]! < times[first]! + window) end++
    most = Math.max(most, end - first)
  }
  return most
}

/** Counts the items of each kind. */
const countBy = <A>(items: ReadonlyArray<A>, getKind: (item: A) => number): Record<number, number> =>
  Object.fromEntries([...Map.groupBy(items, getKind)].map(([kind, { length }]) => [kind, length]))

/** Returns the messages of the warnings that a service has logged. */
const readWarnings = ({ output }: Service): ReadonlyArray<string> => [
  ...new Set(
    output()
      .split("\n")
      .filter((line) => line.startsWith("{"))
      .map((line): string => JSON.parse(line).msg)
  )
]

/** Runs a scenario on a new database and returns its report and the bounds that it breaks. */
const runScenario = async (name: ScenarioName) => {
  const resources = makeResources()
  const { archive } = sample()
  const keys: ReadonlyArray<Key> = Array.from({ length: Math.ceil(clientCount / clientsPerKey) }, () =>
    key(archive.workspace.id, archive.users[0]!)
  )
  // Each application reads its own prompt, so that the service has none of them in memory after its restart.
  const prompts = Array.from({ length: clientCount }, (_, index) =>
    prompt({ title: `Prompt ${index}`, current_content: "A text for {{shop}}. ".repeat(100) })
  )
  const env = {
    ...(await resources.acquire(postgres.acquire)),
    PORT: String(await freePort()),
    RATE_LIMIT_PER_PROCESS: "1000000",
    LOG_LEVEL: "Warn"
  }
  let service = await startService(env)
  const kill = async () => {
    const exited = once(service.process, "exit")
    service.process.kill("SIGKILL")
    await exited
  }
  let stopAll: ReadonlyArray<() => Promise<Observations>> = []
  try {
    await (await resources.acquire(connectTo(env))).importArchive({
      ...archive,
      prompts: [...archive.prompts, ...prompts],
      api_keys: [...archive.api_keys, ...keys.map(({ stored }) => stored)]
    })
    if (name === "cold") await kill()

    const startsAt = Date.now() + 2_000
    const startPeriod = name === "warm" ? ttl : (outage * 5) / 6
    const applications = prompts.map(
      ({ id }, index): Application => ({
        apiKey: keys[index % keys.length]!.plaintext,
        prompt: id,
        startsAt: startsAt + (index / clientCount) * startPeriod
      })
    )
    /** The applications of each process. */
    const indexes = Array.from({ length: processCount }, (_, process) =>
      [...applications.keys()].filter((index) => index % processCount === process)
    )
    stopAll = indexes.map((indexes) =>
      startApplications({
        url: service.url,
        applications: indexes.map((index) => applications[index]!),
        ttl,
        maxStale: outage + 10 * ttl,
        readInterval
      })
    )
    const outageStart = name === "warm" ? startsAt + 2 * ttl + readInterval : startsAt
    await setTimeout(outageStart - Date.now())
    if (name === "warm") await kill()
    const restartedAt = outageStart + outage
    await setTimeout(restartedAt - Date.now())
    service = await startService(env)
    const readyAt = Date.now()
    await setTimeout(2 * ttl + readInterval)
    const observations = await Promise.all(stopAll.map((stop) => stop()))
    stopAll = []
    const endedAt = Date.now()

    const exchanges = observations
      .flatMap(({ exchanges }, process) =>
        exchanges.map((exchange) => ({ ...exchange, application: indexes[process]![exchange.application]! }))
      )
      .sort((a, b) => a.sentAt - b.sentAt)
    const findExchanges = (from: number, until: number) =>
      exchanges.filter(({ sentAt }) => sentAt >= from && sentAt < until)
    const sum = (count: (observations: Observations) => number) =>
      observations.reduce((total, one) => total + count(one), 0)

    const steadyStart = name === "warm" ? outageStart - ttl : readyAt + ttl + readInterval
    const steadyRate = findExchanges(steadyStart, steadyStart + ttl).length / (ttl / 1_000)
    const after = findExchanges(restartedAt, endedAt)
    const afterReady = findExchanges(readyAt, endedAt)
    const peakRate = countPeak(
      after.map(({ sentAt }) => sentAt),
      1_000
    )
    const freshAt = new Map<number, number>()
    for (const exchange of after) {
      const { application, receivedAt } = exchange
      if (isSuccess(exchange) && !freshAt.has(application)) freshAt.set(application, receivedAt)
    }
    const byKey = Map.groupBy(exchanges, ({ application }) => application % keys.length)
    const requestsOfKey = Math.max(
      ...[...byKey.values()].map((sent) =>
        countPeak(
          sent.map(({ sentAt }) => sentAt),
          minute
        )
      )
    )
    const report = {
      scenario: name,
      /** Requests per second. */
      steadyRate: Number(steadyRate.toFixed(1)),
      peakRate,
      peakToSteady: Number((peakRate / steadyRate).toFixed(2)),
      /** Requests per second without a response in the outage. */
      outageRate: Number(
        (
          sum(({ lost }) => lost.filter((at) => at >= outageStart && at < restartedAt).length) /
          (outage / 1_000)
        ).toFixed(1)
      ),
      /** How long the service took to start, and the statuses of its responses in this time. */
      startUpMs: readyAt - restartedAt,
      startUpStatuses: countBy(findExchanges(restartedAt, readyAt), ({ status }) => status),
      allFreshAfterMs: Math.max(...freshAt.values()) - readyAt,
      neverFresh: clientCount - freshAt.size,
      statuses: countBy(afterReady, ({ status }) => status),
      rateLimited: exchanges.filter(({ status }) => status === 429).length,
      /** The most requests of one key within a minute. */
      requestsOfKey,
      failedReads: sum((one) => one.failedReads),
      needlessFallbacks: sum((one) => one.needlessFallbacks),
      warnings: readWarnings(service),
      generatorDelayMs: Math.round(Math.max(...observations.map(({ maxDelay }) => maxDelay)))
    }
    const bounds: Readonly<Record<string, boolean>> = {
      [`the peak is more than ${maxRatio} times the steady rate`]: peakRate <= maxRatio * steadyRate,
      [`not every application had a fresh text after ${ttl / 1_000} s`]:
        report.allFreshAfterMs <= ttl && report.neverFresh === 0,
      "a key exceeded its limit": requestsOfKey <= defaultRateLimits.perKey && report.rateLimited === 0,
      "a request failed although the service was ready": afterReady.every(isSuccess),
      "a read failed, or returned the fallback instead of a cached text":
        report.failedReads === 0 && report.needlessFallbacks === 0
    }
    const broken = Object.entries(bounds).filter(([, holds]) => !holds)
    return { report, broken: broken.map(([bound]) => bound) }
  } finally {
    await Promise.allSettled(stopAll.map((stop) => stop()))
    await service.stop()
    await resources.release()
  }
}

for (const name of scenarios) {
  const { report, broken } = await runScenario(name)
  console.log(report)
  if (report.generatorDelayMs > maxGeneratorDelay) {
    console.error(
      `${name}: the applications were late by up to ${report.generatorDelayMs} ms, so the result is invalid; repeat the run on an idle machine`
    )
    process.exitCode = 1
  } else if (broken.length > 0) {
    for (const bound of broken) console.error(`${name}: ${bound}`)
    process.exitCode = 1
  }
}
