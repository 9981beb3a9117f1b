/**
 * Runs the service under long stress: requests to all endpoints, changes of the data, clients that disconnect, and
 * a separate PostgreSQL and Redis that are stopped, frozen and locked. Exits with 1 when the heap grows,
 * descriptors leak, a response is unexpected or later than the deadline, or the service does not recover.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test node bench/soak.ts [--minutes 20]
 */
import { readdirSync } from "node:fs"
import { Agent, get } from "node:http"
import { connect } from "node:net"
import { setTimeout } from "node:timers/promises"
import { parseArgs } from "node:util"
import * as Effect from "effect/Effect"
import { prompt, sample } from "../test/support/archives.ts"
import { freshCluster } from "../test/support/cluster.ts"
import { connectTo, makeResources } from "../test/support/database.ts"
import { lockTables, promptTables } from "../test/support/locks.ts"
import { redisServer } from "../test/support/redis.ts"
import { startService } from "../test/support/service.ts"

const { values } = parseArgs({ options: { minutes: { type: "string", default: "20" } } })
const duration = Number(values.minutes) * 60_000
if (!(duration >= 60_000)) throw new Error("--minutes must be a number of at least 1")

/** The service's request deadline of 5 s and what a busy machine may add to it, in milliseconds. */
const responseTimeoutMs = 7_000
/** The greatest allowed growth of the warm heap, in MiB per hour. */
const maxSlope = 60
const maxDescriptorsLeft = 20

/** Loaded into the service: on SIGUSR2, collects garbage and prints the size of the heap. */
const probe = `data:text/javascript,${encodeURIComponent(
  `process.on("SIGUSR2", () => { gc(); console.error("heap " + process.memoryUsage().heapUsed) })`
)}`

interface Sample {
  readonly hours: number
  readonly mebibytes: number
  readonly descriptors: number
}
/** Returns the growth of the heap in MiB per hour, by least squares. */
const fitSlope = (points: ReadonlyArray<Sample>): number => {
  const mean = (select: (point: Sample) => number) =>
    points.reduce((sum, p) => sum + select(p), 0) / points.length
  const [x, y] = [mean(({ hours }) => hours), mean(({ mebibytes }) => mebibytes)]
  return (
    points.reduce((sum, p) => sum + (p.hours - x) * (p.mebibytes - y), 0) /
    points.reduce((sum, p) => sum + (p.hours - x) ** 2, 0)
  )
}

const soak = async () => {
  const cluster = await resources.acquire(freshCluster)
  const redis = await resources.acquire(redisServer)
  await cluster.start()
  const env = {
    DATABASE_URL: cluster.url,
    REDIS_URL: redis.url,
    RATE_LIMIT_PER_KEY: "8000",
    RATE_LIMIT_PER_PROCESS: "100000000",
    LOG_LEVEL: "Fatal",
    NODE_OPTIONS: `--expose-gc --import=${probe}`
  }
  const service = await resources.acquire(
    Effect.acquireRelease(
      Effect.promise(() => startService(env)),
      ({ process }) => Effect.sync(() => process.kill("SIGKILL"))
    )
  )
  const { archive, keys } = sample()
  const large = prompt({ current_content: "x".repeat(500_000) })
  const content = { ...archive, prompts: [...archive.prompts, large] }
  const { importArchive, sql } = await resources.acquire(connectTo(env))
  await importArchive(content)

  let running = true
  let disturbed = false
  const outcomes = new Map<string, number>()
  const unexpected = new Map<string, number>()
  const durations: Array<number> = []
  const add = (to: Map<string, number>, name: string) => to.set(name, (to.get(name) ?? 0) + 1)

  const [first] = archive.prompts
  const authorized = `Bearer ${keys.active.plaintext}`
  const id = first!.id
  /** The requests and their expected statuses. During a disturbance 503 is expected too. */
  const requests: ReadonlyArray<
    readonly [path: string, authorization: string | undefined, ...statuses: Array<number>]
  > = [
    ["/api/v1/prompts", authorized, 200, 429],
    ["/api/v1/prompts?type=system&per_page=2&page=1", authorized, 200, 429],
    [`/api/v1/prompts/${id}`, authorized, 200, 429],
    [`/api/v1/prompts/${id}/resolved`, authorized, 200, 429],
    [`/api/v1/prompts/${id}/versions`, authorized, 200, 429],
    [`/api/v1/prompts/${id}/versions/1`, authorized, 200, 429],
    [`/api/v1/prompts/${large.id}`, authorized, 200, 429],
    ["/api/v1/prompts", `Bearer ${keys.second.plaintext}`, 200, 401, 429],
    ["/api/v1/prompts?page=0", authorized, 400, 429],
    ["/api/v1/prompts", `Bearer key_live_${"0".repeat(64)}`, 401],
    ["/api/v1/prompts", undefined, 401],
    ["/api/v1/nowhere", undefined, 404],
    ["/healthz", undefined, 200],
    ["/readyz", undefined, 200],
    ["/openapi.json", undefined, 200],
    ["/docs", undefined, 200]
  ]

  const sendOne = (
    agent: Agent,
    [path, authorization, ...statuses]: (typeof requests)[number]
  ): Promise<void> =>
    new Promise((resolve) => {
      const started = performance.now()
      const wasDisturbed = disturbed
      const end = (outcome: string, isExpected: boolean) => {
        durations[Math.floor(Math.random() * 200_000)] = performance.now() - started
        add(outcomes, outcome)
        if (!isExpected) add(unexpected, `${outcome} to ${path}`)
        resolve()
      }
      const headers = authorization === undefined ? {} : { authorization }
      const request = get(service.url + path, { agent, headers, timeout: responseTimeoutMs }, (response) => {
        response.resume()
        response.on("error", () => end("truncated", false))
        response.on("end", () => {
          const status = response.statusCode!
          end(String(status), statuses.includes(status) || (status === 503 && (wasDisturbed || disturbed)))
        })
      })
      request.on("timeout", () => request.destroy(new Error("hang")))
      // The service may close an idle keep-alive connection just when a request is sent on it.
      request.on("error", (error: NodeJS.ErrnoException) =>
        end(error.code ?? error.message, error.code === "ECONNRESET" && request.reusedSocket)
      )
    })

  const client = async (offset: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = offset; running; i++) {
      await sendOne(agent, requests[i % requests.length]!)
      await setTimeout(5)
    }
    agent.destroy()
  }

  const disconnectingClient = async () => {
    while (running) {
      const socket = connect(service.port, "127.0.0.1", () =>
        socket.write(
          `GET /api/v1/prompts/${large.id} HTTP/1.1\r\nHost: a\r\nAuthorization: ${authorized}\r\n\r\n`.repeat(
            3
          )
        )
      )
      socket.on("error", () => {})
      socket.once("data", () => socket.resetAndDestroy())
      await setTimeout(100)
      socket.destroy()
    }
  }

  /** Changes the data that clients read. Changes fail while PostgreSQL is disturbed and are made again. */
  const changer = async () => {
    for (let i = 0; running; i++) {
      try {
        await sql("update prompts set title = $1 where id = $2", [`Title ${i}`, id])
        await sql(
          "update api_keys set revoked_at = case when revoked_at is null then now() end where id = $1",
          [keys.second.stored.id]
        )
        if (i % 20 === 0) await importArchive(content)
      } catch {
        if (!disturbed) add(unexpected, "a failed change")
      }
      await setTimeout(200)
    }
  }

  const disturbances: ReadonlyArray<readonly [name: string, run: () => Promise<void>]> = [
    [
      "backends terminated",
      async () => {
        await sql(
          "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = 'prompt-retrieval'"
        )
      }
    ],
    [
      "PostgreSQL stopped for 2 s",
      async () => {
        await cluster.stop()
        await setTimeout(2_000)
        await cluster.start()
      }
    ],
    [
      "PostgreSQL frozen for 3 s",
      async () => {
        cluster.freeze()
        await setTimeout(3_000)
        cluster.thaw()
      }
    ],
    [
      "tables locked for 2 s",
      async () => {
        const release = await lockTables(cluster.url, promptTables)
        await setTimeout(2_000)
        await release()
      }
    ],
    [
      "Redis killed for 2 s",
      async () => {
        await Effect.runPromise(redis.stop)
        await setTimeout(2_000)
        await Effect.runPromise(redis.start)
      }
    ],
    [
      "Redis frozen for 2 s",
      async () => {
        await Effect.runPromise(redis.freeze)
        await setTimeout(2_000)
        await Effect.runPromise(redis.thaw)
      }
    ]
  ]

  /** The longest recovery after each disturbance, in milliseconds. */
  const recoveries = new Map<string, number>()

  const disturber = async () => {
    for (let i = 0; running; i++) {
      await setTimeout(5_000)
      const [name, run] = disturbances[i % disturbances.length]!
      disturbed = true
      await run()
      const endedAt = performance.now()
      const readStatus = () => fetch(`${service.url}/readyz`).then((response) => response.status)
      while ((await readStatus()) !== 200 && performance.now() - endedAt < 15_000) await setTimeout(20)
      const recovery = performance.now() - endedAt
      recoveries.set(name, Math.max(recoveries.get(name) ?? 0, recovery))
      if (recovery > 2_000) add(unexpected, `recovery after ${name} took more than 2 s`)
      // Requests sent during the disturbance end by their deadline.
      await setTimeout(5_000)
      disturbed = false
    }
  }

  const descriptors = () => readdirSync(`/proc/${service.process.pid}/fd`).length

  const samples: Array<Sample> = []
  const startedAt = performance.now()

  const measure = async () => {
    const printed = service.output().split("heap ").length
    service.process.kill("SIGUSR2")
    for (let i = 0; service.output().split("heap ").length === printed && i < 500; i++) await setTimeout(10)
    samples.push({
      hours: (performance.now() - startedAt) / 3_600_000,
      mebibytes: Number(service.output().split("heap ").at(-1)!.split("\n")[0]) / 1024 / 1024,
      descriptors: descriptors()
    })
  }

  const before = descriptors()
  const tasks = [
    ...Array.from({ length: 8 }, (_, i) => client(i * 2)),
    disconnectingClient(),
    changer(),
    disturber()
  ]
  while (performance.now() - startedAt < duration) {
    await setTimeout(Math.min(5_000, duration / 30))
    await measure()
  }
  running = false
  await Promise.all(tasks)
  await setTimeout(8_000)
  const descriptorsAfter = descriptors()
  await measure()
  const code = await service.stop()

  const warm = samples.slice(Math.floor(samples.length / 3), -1)
  const slope = fitSlope(warm)
  const sorted = Object.values(durations).toSorted((a, b) => a - b)
  const percentile = (p: number) => sorted[Math.floor((sorted.length - 1) * p)]!.toFixed(1)
  const format = (map: ReadonlyMap<string, number>) =>
    [...map].map(([name, n]) => `${name}: ${Math.round(n)}`).join(", ") || "none"

  console.log(`minutes            ${values.minutes}`)
  console.log(`responses          ${format(outcomes)}`)
  console.log(
    `duration, ms       median ${percentile(0.5)}, p99 ${percentile(0.99)}, longest ${percentile(1)}`
  )
  console.log(`recovery, ms       ${format(recoveries)}`)
  console.log(
    `heap, MiB          first ${samples[0]!.mebibytes.toFixed(1)}, warm ${warm[0]!.mebibytes.toFixed(1)}, last ${samples.at(-1)!.mebibytes.toFixed(1)}, slope once warm ${slope.toFixed(1)} per hour`
  )
  console.log(
    `descriptors        before ${before}, most ${Math.max(...samples.map((s) => s.descriptors))}, after ${descriptorsAfter}`
  )
  console.log(`exit code          ${code}`)
  console.log(`unexpected         ${format(unexpected)}`)

  // In a short run the heap's normal variation hides its slope.
  const grows = duration >= 600_000 && slope > maxSlope
  if (unexpected.size > 0 || code !== 0 || grows || descriptorsAfter > before + maxDescriptorsLeft)
    process.exitCode = 1
}

const resources = makeResources()
try {
  await soak()
} finally {
  await resources.release()
}
