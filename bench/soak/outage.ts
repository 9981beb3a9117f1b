/**
 * Takes the database of two services away under load, in four ways, and checks responses against the history of the
 * database. A known response is a cached response that was current when the service last had contact with its database.
 * A known read is a request for which the service has such a response. A third service, whose database stays available,
 * gets the same load. Known reads of the first two services must not be much slower than known reads of the third
 * service. No response may be older than allowed, or older than an earlier response. No revoked key may read.
 */
import { setTimeout } from "node:timers/promises"
import { sample } from "../../test/support/archives.ts"
import { type Reply, read } from "../../test/support/clients/read.ts"
import { freshCluster } from "../../test/support/database/cluster.ts"
import { connectTo } from "../../test/support/database/connection.ts"
import { freshDatabase, toDatabaseUrl } from "../../test/support/database/server.ts"
import { proxyToUrl } from "../../test/support/network/tcpProxy.ts"
import { isFromBefore, makeOutageTenant, startOutageLoad, warm } from "../../test/support/services/outage.ts"
import type { Service } from "../../test/support/services/startService.ts"
import { acquireService, p99, type Run } from "./run.ts"

/** How long the load runs before each outage, in milliseconds. */
const beforeOutageMs = 5_000
/** The maximum ratio between the p99 of known reads in an outage and the p99 of a service with a database. */
const maxRatio = 1.5
/** How long a known read may wait for the database, in milliseconds: 250 ms, and a reserve for a busy machine. */
const maxDatabaseWaitMs = 300
/** The number of clients that send known reads to each service. */
const clientsPerService = 4
/** The minimum number of known reads during an outage of at least 30 s. */
const minKnownReads = 10_000
/** The maximum age of a response in normal operation, in milliseconds: 3 s for a heartbeat, and a reserve. */
const maxStalenessMs = 3_500

/** A write of a title. The title is the number of the write. */
interface Write {
  readonly startedAt: number
  committedAt: number
}

export const outage = async (run: Run): Promise<void> => {
  const { acquire, check } = run
  const outageMs = run.seconds * 1_000
  const cluster = await acquire(freshCluster)
  await cluster.start()
  const proxy = await acquire(proxyToUrl(cluster.url))
  const start = (databaseUrl: string): Promise<Service> =>
    acquireService(run, {
      DATABASE_URL: databaseUrl,
      OUTAGE_MAX_AGE: `${2 * outageMs}ms`,
      RATE_LIMIT_PER_KEY: "100000000",
      LOG_LEVEL: "Warn"
    })
  const services = await Promise.all([1, 2].map(() => start(proxy.url)))
  const referenceUrl = toDatabaseUrl(await acquire(freshDatabase))
  const reference = [await start(referenceUrl)]
  const [quiet, edited] = [makeOutageTenant(), sample()]
  const direct = await acquire(connectTo({ DATABASE_URL: cluster.url }))
  for (const { archive } of [quiet, edited]) await direct.importArchive(archive)
  const referenceDatabase = await acquire(connectTo({ DATABASE_URL: referenceUrl }))
  await referenceDatabase.importArchive(quiet.archive)
  const prompt = edited.archive.prompts[0]!
  const editedPath = `/api/v1/prompts/${prompt.id}`
  const quietPath = `/api/v1/prompts/${quiet.archive.prompts[0]!.id}`

  const writes: Array<Write> = []

  const faults = {
    "shut down": { begin: cluster.shutDown, end: cluster.start },
    "kill -9": { begin: cluster.kill, end: cluster.start },
    SIGSTOP: { begin: async () => cluster.freeze(), end: async () => cluster.thaw() },
    "silent cut": {
      begin: () => acquire(proxy.freeze),
      end: () => acquire(proxy.thaw)
    }
  }

  for (const [name, { begin, end }] of Object.entries(faults)) {
    const setRevoked = (isRevoked: boolean) =>
      direct.sql(`update api_keys set revoked_at = ${isRevoked ? "now()" : "null"} where id = $1`, [
        quiet.keys.second.stored.id
      ])
    await setRevoked(false)
    await setTimeout(1_000)
    await warm([...services, ...reference], quiet)
    for (const { url } of services) {
      for (const { plaintext } of [quiet.keys.second, quiet.keys.revoked])
        await read(url + quietPath, plaintext)
    }

    // A writer edits another workspace, and one reader per service reads the edits.
    const earlierWrites = writes.length
    let isRunning = true
    const write = async () => {
      const entry = { startedAt: performance.now(), committedAt: Number.POSITIVE_INFINITY }
      const title = String(writes.push(entry) - 1)
      try {
        await direct.sql("update prompts set title = $1 where id = $2", [title, prompt.id])
        entry.committedAt = performance.now()
      } catch {
        // The database is unavailable. Constant attempts to connect would slow this process down.
        await setTimeout(500)
      }
    }
    await write()
    const writer = async () => {
      for (; isRunning; await setTimeout(50)) await write()
    }
    const reader = async ({ url }: Service) => {
      let last = 0
      for (; isRunning; await setTimeout(5)) {
        const reply = await read(url + editedPath, edited.keys.active.plaintext)
        if (reply.status !== 200) continue
        const version = Number(JSON.parse(reply.body).data.title)
        if (Number.isNaN(version)) continue
        check(version >= last, `${name}: version ${version} after ${last}`)
        last = version
        const age = isFromBefore(reply) ? Number(reply.headers.age) * 1_000 : maxStalenessMs
        const newest = writes.findLastIndex(({ committedAt }) => committedAt < reply.startedAt - age)
        check(
          version >= newest,
          `${name}: version ${version} although ${newest} was committed, age ${age} ms`
        )
      }
    }
    const history = [writer(), ...services.map(reader)]

    const startLoads = () =>
      [services, reference].map((each) => startOutageLoad(each, quiet, clientsPerService))
    const before = startLoads()
    await setTimeout(beforeOutageMs)
    await Promise.all(before.flatMap(({ known, unknown }) => [known.stop(), unknown.stop()]))

    const [load, normalLoad] = startLoads()
    const revoked: Array<Reply> = []
    await begin()
    const until = performance.now() + outageMs
    while (performance.now() < until) {
      for (const { url } of services) revoked.push(await read(url + quietPath, quiet.keys.revoked.plaintext))
      await setTimeout(200)
    }
    const [known, normal] = await Promise.all([load!.known.stop(), normalLoad!.known.stop()])
    await normalLoad!.unknown.stop()
    // In a silent cut, revokes the key while the services are cut off, because the database still accepts writes. After
    // the other outages, revokes the key once the database runs again.
    if (name === "silent cut") await setRevoked(true)
    const endedAt = performance.now()
    await end()
    if (name !== "silent cut") await setRevoked(true)
    await Promise.all(
      services.map(async ({ url }) => {
        let isRestored = false
        for (const limit = performance.now() + 5_000; performance.now() < limit; await setTimeout(5)) {
          const reply = await read(url + quietPath, quiet.keys.second.plaintext)
          if (reply.status === 401) isRestored = true
          check(!isRestored || reply.status === 401, `${name}: ${reply.status} after a 401`)
          check(reply.status !== 200 || isFromBefore(reply), `${name}: a revoked key reads a new response`)
        }
        check(isRestored, `${name}: the revocation is not seen within 5 s`)
      })
    )
    isRunning = false
    await Promise.all(history)
    const unknownReplies = await load!.unknown.stop()

    const failed = known.filter(({ status }) => status !== 200).length
    const ratio = p99(known) / p99(normal)
    check(failed === 0, `${name}: ${failed} known reads failed`)
    check(known.length >= minKnownReads || outageMs < 30_000, `${name}: only ${known.length} known reads`)
    check(
      p99(known) < maxRatio * p99(normal) + maxDatabaseWaitMs,
      `${name}: the 99th percentile is ${ratio.toFixed(2)} times as high`
    )
    check(
      revoked.every(({ status }) => status === 401),
      `${name}: a key that was revoked before is not rejected`
    )
    const count = (replies: ReadonlyArray<Reply>, status: number) =>
      replies.filter((reply) => reply.status === status).length
    console.log(
      `${name.padEnd(12)} known ${known.length}, ${known.filter(isFromBefore).length} from before, ${failed} failed; p99 ${p99(known).toFixed(1)} ms, with a database ${p99(normal).toFixed(1)} ms; unknown 200 ${count(unknownReplies, 200)}, 503 ${count(unknownReplies, 503)}; ${writes.length - earlierWrites} writes; ended after ${Math.round((performance.now() - endedAt) / 1_000)} s`
    )
  }
}
