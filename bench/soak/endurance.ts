/** Sends requests during changes and faults. The service must leak no memory or descriptors, and recover within 2 s. */
import { readdirSync } from "node:fs"
import { Agent } from "node:http"
import { connect } from "node:net"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { prompt, sample } from "../../test/support/archives.ts"
import { type Reply, read } from "../../test/support/clients/read.ts"
import { freshCluster } from "../../test/support/database/cluster.ts"
import { connectTo } from "../../test/support/database/connection.ts"
import { lockTables, promptTables } from "../../test/support/database/locks.ts"
import { redisServer } from "../../test/support/programs/redis.ts"
import { acquireService, p99, type Run } from "./run.ts"

/** The maximum duration of a request, in milliseconds: a deadline of 5 s, and a reserve of 2 s for a busy machine. */
const responseTimeoutMs = 7_000
/** The maximum growth of the heap after the warm-up, in MiB, in a run of at least 10 minutes. */
const maxGrowth = 20
const maxDescriptorsLeft = 20

/** A module that the service loads. On SIGUSR2, the module collects garbage and prints the size of the heap. */
const probe = `data:text/javascript,${encodeURIComponent(
  `process.on("SIGUSR2", () => { gc(); console.error("heap " + process.memoryUsage().heapUsed) })`
)}`

export const endurance = async (run: Run): Promise<void> => {
  const { acquire, check, seconds } = run
  const cluster = await acquire(freshCluster)
  const redis = await acquire(redisServer)
  await cluster.start()
  const env = {
    DATABASE_URL: cluster.url,
    REDIS_URL: redis.url,
    RATE_LIMIT_PER_KEY: "8000",
    LOG_LEVEL: "Fatal"
  }
  const service = await acquireService(run, { ...env, NODE_OPTIONS: `--expose-gc --import=${probe}` })
  const { archive, keys } = sample()
  const large = prompt({ current_content: "x".repeat(500_000) })
  const content = { ...archive, prompts: [...archive.prompts, large] }
  const { importArchive, sql } = await acquire(connectTo(env))
  await importArchive(content)
  const { id } = archive.prompts[0]!
  const { active, second } = { active: keys.active.plaintext, second: keys.second.plaintext }

  let running = true
  let disturbed = false
  const statuses: Record<string, number> = {}
  const replies: Array<Reply> = []

  /** The requests and their expected statuses. During a disturbance 503 is expected too. */
  const requests: ReadonlyArray<readonly [path: string, key: string, ...statuses: Array<number>]> = [
    ...[
      "",
      "?type=system&per_page=2&page=1",
      `/${id}`,
      `/${id}/resolved`,
      `/${id}/versions`,
      `/${id}/versions/1`
    ].map((end) => [`/api/v1/prompts${end}`, active, 200, 429] as const),
    [`/api/v1/prompts/${large.id}`, active, 200, 429],
    ["/api/v1/prompts", second, 200, 401, 429],
    ["/api/v1/prompts?page=0", active, 400, 429],
    ["/api/v1/prompts", `key_live_${"0".repeat(64)}`, 401],
    ["/api/v1/nowhere", active, 404],
    ...["/healthz", "/readyz", "/openapi.json", "/docs"].map((path) => [path, active, 200] as const)
  ]

  const client = async (offset: number) => {
    const agent = new Agent({ keepAlive: true, maxSockets: 1 })
    for (let i = offset; running; i++) {
      const [path, key, ...expected] = requests[i % requests.length]!
      const wasDisturbed = disturbed
      const reply = await read(service.url + path, key, {}, agent)
      statuses[reply.status] = (statuses[reply.status] ?? 0) + 1
      // The service can close an idle keep-alive connection at the moment when a client sends a request.
      const isExpected =
        reply.status === "ECONNRESET" ||
        expected.includes(Number(reply.status)) ||
        (reply.status === 503 && (wasDisturbed || disturbed))
      check(isExpected, `${reply.status} to ${path}`)
      check(reply.endedAt - reply.startedAt < responseTimeoutMs, `a late response to ${path}`)
      if (replies.length < 500_000) replies.push({ ...reply, body: "" })
      await setTimeout(5)
    }
    agent.destroy()
  }

  const disconnectingClient = async () => {
    const request = `GET /api/v1/prompts/${large.id} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${active}\r\n\r\n`
    while (running) {
      const socket = connect(service.port, "127.0.0.1", () => socket.write(request.repeat(3)))
      socket.on("error", () => {})
      socket.once("data", () => socket.resetAndDestroy())
      await setTimeout(100)
      socket.destroy()
    }
  }

  /** Repeatedly changes the data that clients read. A change can fail during a fault of PostgreSQL. */
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
        check(disturbed, "a failed change")
      }
      await setTimeout(200)
    }
  }

  const disturbances: Readonly<Record<string, () => Promise<unknown>>> = {
    "backends terminated": () =>
      sql(
        "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid() and application_name = 'prompt-retrieval'"
      ),
    "PostgreSQL stopped for 2 s": () =>
      cluster
        .stop()
        .then(() => setTimeout(2_000))
        .then(() => cluster.start()),
    "PostgreSQL frozen for 3 s": async () => {
      cluster.freeze()
      await setTimeout(3_000)
      cluster.thaw()
    },
    "tables locked for 2 s": async () => {
      const release = await lockTables(cluster.url, promptTables)
      await setTimeout(2_000)
      await release()
    },
    "Redis killed for 2 s": () =>
      Effect.runPromise(redis.stop)
        .then(() => setTimeout(2_000))
        .then(() => Effect.runPromise(redis.start)),
    "Redis frozen for 2 s": () =>
      Effect.runPromise(redis.freeze)
        .then(() => setTimeout(2_000))
        .then(() => Effect.runPromise(redis.thaw))
  }

  /** The longest recovery after each kind of disturbance, in milliseconds. */
  const recoveries: Record<string, number> = {}
  const disturber = async () => {
    const names = Object.keys(disturbances)
    for (let i = 0; running; i++) {
      await setTimeout(5_000)
      const name = names[i % names.length]!
      disturbed = true
      await disturbances[name]!()
      const endedAt = performance.now()
      while ((await fetch(`${service.url}/readyz`)).status !== 200 && performance.now() - endedAt < 15_000)
        await setTimeout(20)
      const recovery = Math.round(performance.now() - endedAt)
      recoveries[name] = Math.max(recoveries[name] ?? 0, recovery)
      check(recovery <= 2_000, `recovery after ${name} took more than 2 s`)
      // Waits until the requests that were sent during the disturbance have reached their deadline.
      await setTimeout(5_000)
      disturbed = false
    }
  }

  const countDescriptors = () => readdirSync(`/proc/${service.process.pid}/fd`).length
  const readHeap = async (): Promise<number> => {
    const printed = service.output().split("heap ").length
    service.process.kill("SIGUSR2")
    for (let i = 0; service.output().split("heap ").length === printed && i < 500; i++) await setTimeout(10)
    return Number(service.output().split("heap ").at(-1)!.split("\n")[0]) / 1024 ** 2
  }

  const before = countDescriptors()
  const until = performance.now() + seconds * 1_000
  const tasks = [...Array(8).keys()].map((i) => client(i * 2))
  tasks.push(disconnectingClient(), changer(), disturber())
  const heaps: Array<number> = []
  while (performance.now() < until) {
    await setTimeout(Math.min(5_000, (seconds * 1_000) / 30))
    heaps.push(await readHeap())
  }
  running = false
  await Promise.all(tasks)
  await setTimeout(8_000)
  const after = countDescriptors()
  const code = await service.stop()

  const warm = heaps.slice(Math.floor(heaps.length / 3))
  const third = Math.ceil(warm.length / 3)
  const [early, late] = [Math.min(...warm.slice(0, third)), Math.min(...warm.slice(-third))]
  console.log({ seconds, statuses, recoveriesMs: recoveries, p99Ms: p99(replies) })
  console.log({ heapMiB: { early, late }, descriptors: { before, after }, code })
  // In a short run, normal variation hides the growth of the heap.
  check(seconds < 600 || late - early <= maxGrowth, `the heap grew from ${early} to ${late} MiB`)
  check(after <= before + maxDescriptorsLeft, `${after} descriptors instead of ${before}`)
  check(code === 0, `exit code ${code}`)
}
