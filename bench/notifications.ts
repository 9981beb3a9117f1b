/**
 * Measures what change notifications cost at 1,000 edits per second, by the number of listeners: the time from the
 * start of an edit until a listener receives its notification, the duration of edits, and the most edits per second that
 * 8 writers reach. Every edit is a transaction in another workspace. Measures a server that waits for its disk at each
 * commit (fsync on), and one that does not. Takes three to six minutes and needs the programs of a PostgreSQL server.
 *
 *     TEST_DATABASE_URL=postgres://postgres@127.0.0.1:5432/test npx node bench/notifications.ts
 */
import { connect, type Socket } from "node:net"
import { setTimeout } from "node:timers/promises"
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads"
import postgres from "postgres"
import { freshCluster } from "../test/support/cluster.ts"
import { makeResources } from "../test/support/database.ts"
import { quantile } from "../test/support/freshness.ts"
import { run } from "../test/support/service.ts"

const workspaces = 1_000
const editsPerSecond = 1_000
const seconds = 5
const writers = 8
/** The listeners whose notifications are read. The others only receive theirs. */
const sampled = 4
const channel = "prompt_retrieval_changes"

/** What the thread of the listeners needs. */
interface ListenerData {
  readonly url: string
  readonly count: number
  readonly ids: ReadonlyArray<string>
  /** When the latest edit of each workspace began, in milliseconds since the epoch. */
  readonly startedAt: Float64Array
}

const now = (): number => performance.timeOrigin + performance.now()

/** Opens a connection that listens, and calls `onData` with everything that follows. */
const listenRaw = async (url: URL, onData: (data: Buffer) => void): Promise<Socket> => {
  const socket = connect(Number(url.port), url.hostname)
  const parameters = `user\0${url.username}\0database\0${url.pathname.slice(1)}\0\0`
  const startup = Buffer.alloc(8 + parameters.length)
  startup.writeInt32BE(startup.length, 0)
  startup.writeInt32BE(3 << 16, 4)
  startup.write(parameters, 8)
  const statement = `listen ${channel}\0`
  const query = Buffer.alloc(5 + statement.length)
  query.write("Q")
  query.writeInt32BE(4 + statement.length, 1)
  query.write(statement, 5)
  socket.write(Buffer.concat([startup, query]))
  await new Promise<void>((resolve, reject) => {
    let received = ""
    socket.on("error", reject).on("data", function wait(data: Buffer) {
      received += data.toString("latin1")
      if (!received.includes("LISTEN\0")) return
      socket.off("data", wait).on("data", onData)
      resolve()
    })
  })
  return socket
}

/** The thread of the listeners: reports that they listen, and at the end the latencies. */
const runListeners = async ({ url, count, ids, startedAt }: ListenerData): Promise<void> => {
  const places = new Map(ids.map((id, place) => [id, place]))
  const latencies: Array<number> = []
  const record = (data: Buffer): void => {
    const time = now()
    for (const [id] of data.toString("latin1").matchAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g)) {
      const place = places.get(id)
      if (place !== undefined) latencies.push(time - startedAt[place]!)
    }
  }
  const sockets = await Promise.all(
    Array.from({ length: count }, (_, index) => listenRaw(new URL(url), index < sampled ? record : () => {}))
  )
  parentPort!.once("message", () => {
    for (const socket of sockets) socket.destroy()
    parentPort!.postMessage(latencies)
  })
  parentPort!.postMessage("listening")
}

const formatTimes = (times: ReadonlyArray<number>): string =>
  [0.5, 0.99]
    .map((share) => (times.length === 0 ? "-" : quantile(times, share).toFixed(1)).padStart(9))
    .join("")

/** Starts the thread of the listeners. `stop` ends it and returns the latencies in milliseconds. */
const startListeners = async (data: ListenerData) => {
  const worker = new Worker(new URL(import.meta.url), { workerData: data })
  const nextMessage = () =>
    new Promise<unknown>((resolve, reject) => worker.once("message", resolve).once("error", reject))
  await nextMessage()
  return {
    stop: async (): Promise<ReadonlyArray<number>> => {
      // The last notifications may still be on their way.
      await setTimeout(500)
      const latencies = nextMessage()
      worker.postMessage("end")
      const result = (await latencies) as ReadonlyArray<number>
      await worker.terminate()
      return result
    }
  }
}

/** Counts the edits per second when each writer begins the next edit once the last one is done. */
const measureMost = async (edit: (place: number) => Promise<unknown>): Promise<number> => {
  const duration = 2_000
  const end = now() + duration
  let edits = 0
  await Promise.all(
    Array.from({ length: writers }, async (_, writer) => {
      for (let place = writer; now() < end; place = (place + writers) % workspaces, edits++) await edit(place)
    })
  )
  return (edits * 1_000) / duration
}

/** Edits at a fixed rate, however long earlier edits take. Returns the rate that was reached, and the durations. */
const measurePaced = async (edit: (place: number) => Promise<unknown>) => {
  const durations: Array<number> = []
  const pending: Array<Promise<unknown>> = []
  const start = now()
  for (let edits = 0; edits < editsPerSecond * seconds; edits++) {
    const wait = start + (edits * 1_000) / editsPerSecond - now()
    if (wait > 1) await setTimeout(wait)
    const editStart = now()
    pending.push(edit(edits % workspaces).then(() => durations.push(now() - editStart)))
  }
  await Promise.all(pending)
  return { durations, rate: (durations.length * 1_000) / (now() - start) }
}

const measure = async (url: string, name: string, count: number): Promise<void> => {
  const sql = postgres(url, { max: writers, onnotice: () => {} })
  const rows = await sql<Array<{ id: string }>>`select id from workspaces order by id`
  const ids = rows.map(({ id }) => id)
  const startedAt = new Float64Array(new SharedArrayBuffer(workspaces * 8))
  const edit = async (place: number) => {
    startedAt[place] = now()
    await sql`update prompts set title = 'Changed' where workspace_id = ${ids[place]!}`
  }
  const unpaced = await startListeners({ url, count, ids, startedAt })
  const most = await measureMost(edit)
  await unpaced.stop()
  const paced = await startListeners({ url, count, ids, startedAt })
  const { durations, rate } = await measurePaced(edit)
  const latencies = await paced.stop()
  console.log(
    name.padEnd(20) +
      rate.toFixed(0).padStart(8) +
      formatTimes(durations) +
      formatTimes(latencies) +
      most.toFixed(0).padStart(13)
  )
  await sql.end()
}

const execute = async (url: string, statements: ReadonlyArray<string>): Promise<void> => {
  const sql = postgres(url, { max: 1, onnotice: () => {} })
  for (const statement of statements) await sql.unsafe(statement)
  await sql.end()
}

const main = async (): Promise<void> => {
  const resources = makeResources()
  try {
    const cluster = await resources.acquire(freshCluster)
    const start = (fsync: "on" | "off") => cluster.start([`fsync=${fsync}`, "max_connections=300"])
    await start("off")
    const migrated = await run(["migrate"], { DATABASE_URL: cluster.url })
    if (migrated.code !== 0) throw new Error(migrated.stderr)
    await execute(cluster.url, [
      `insert into workspaces (name, tier) select 'Workspace ' || n, 'team' from generate_series(1, ${workspaces}) n`,
      "insert into prompts (workspace_id, title) select id, 'Title' from workspaces",
      "checkpoint"
    ])
    console.log("listeners            edits/s edit p50      p99 received      p99 most edits/s")
    for (const fsync of ["off", "on"] as const) {
      console.log(`fsync ${fsync}`)
      await cluster.stop()
      await start(fsync)
      await execute(cluster.url, ["alter table prompts disable trigger notify_update"])
      await measure(cluster.url, "0, no notifications", 0)
      await execute(cluster.url, ["alter table prompts enable trigger notify_update"])
      for (const count of [0, 10, 50, 200]) await measure(cluster.url, String(count), count)
    }
  } finally {
    await resources.release()
  }
}

await (isMainThread ? main() : runListeners(workerData as ListenerData))
