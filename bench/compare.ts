/**
 * Sends the same generated raw HTTP requests to the service of this checkout and to the service of another one, and
 * prints every response that differs in more than the date and generated request ids. Exits with 1 when a response
 * differs.
 *
 *     npx node bench/compare.ts ../other-checkout [--requests 3000] [--seed 1]
 *
 * Both services run on temporary databases of the PostgreSQL server at `TEST_DATABASE_URL` that hold the same
 * archive.
 */
import { type ChildProcess, execFile, spawn } from "node:child_process"
import { once } from "node:events"
import { mkdtemp, rm, writeFile } from "node:fs/promises"
import { connect } from "node:net"
import { tmpdir } from "node:os"
import { join, resolve } from "node:path"
import { setTimeout as delay } from "node:timers/promises"
import { parseArgs, promisify } from "node:util"

process.env.TEST_DATABASE_URL ??= "postgres://postgres@127.0.0.1:5432/test"
const { sample } = await import("../test/support/archives.ts")
const { makeResources } = await import("../test/support/database.ts")
const { freePort } = await import("../test/support/ports.ts")
const { freshDatabase, toDatabaseUrl } = await import("../test/support/postgres.ts")
const { makeRequestGenerator } = await import("../test/support/rawRequests.ts")

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { requests: { type: "string", default: "3000" }, seed: { type: "string", default: "1" } }
})
const [other] = positionals
if (other === undefined) throw new Error("usage: bench/compare.ts OTHER_CHECKOUT [--requests N] [--seed N]")

const lanes = 16
const startTimeoutMs = 30_000
const responseTimeoutMs = 5_000
const shownDifferences = 20

interface Target {
  readonly port: number
  readonly process: ChildProcess
}

const startService = async (checkout: string, databaseUrl: string, archive: string): Promise<Target> => {
  const port = await freePort()
  const env = {
    PATH: process.env.PATH,
    HOME: process.env.HOME,
    PORT: String(port),
    DATABASE_URL: databaseUrl,
    LOG_LEVEL: "None",
    RATE_LIMIT_PER_KEY: "1000000",
    RATE_LIMIT_PER_PROCESS: "1000000"
  }
  const main = join(checkout, "src/main.ts")
  await promisify(execFile)(process.execPath, [main, "import", archive], { env })
  const child = spawn(process.execPath, [main, "serve"], { env, stdio: ["ignore", "ignore", "inherit"] })
  const deadline = Date.now() + startTimeoutMs
  const isReady = () =>
    fetch(`http://127.0.0.1:${port}/readyz`).then(
      ({ ok }) => ok,
      () => false
    )
  while (!(await isReady())) {
    if (child.exitCode !== null || Date.now() > deadline) throw new Error(`${checkout} does not serve`)
    await delay(50)
  }
  return { port, process: child }
}

/** Sends a request on a new connection and resolves to every byte received until the server closes the connection. */
const exchange = (port: number, request: string): Promise<string> =>
  new Promise((settle) => {
    const chunks: Array<Buffer> = []
    const finish = (ending: string) => {
      clearTimeout(timer)
      socket.destroy()
      settle(Buffer.concat(chunks).toString("latin1") + ending)
    }
    const socket = connect(port, "127.0.0.1", () => socket.write(request, "latin1"))
    const timer = setTimeout(() => finish("[left open]"), responseTimeoutMs)
    socket.on("data", (chunk) => chunks.push(chunk))
    socket.on("error", () => {})
    socket.on("close", () => finish(""))
  })

const uuid = /^(x-request-id: )[0-9a-f]{8}-[0-9a-f-]{27}(?=\r$)/gim
const normalize = (response: string): string =>
  response.replaceAll(/^date: .*(?=\r$)/gim, "date: -").replaceAll(uuid, "$1-")

const resources = makeResources()
const directory = await mkdtemp(join(tmpdir(), "compare-"))
const targets: Array<Target> = []
let different = 0
let compared = 0
const statuses = new Map<string, number>()
try {
  const tenant = sample()
  const archive = join(directory, "archive.json")
  await writeFile(archive, JSON.stringify(tenant.archive))
  for (const checkout of [resolve(other), join(import.meta.dirname, "..")]) {
    targets.push(await startService(checkout, toDatabaseUrl(await resources.acquire(freshDatabase)), archive))
  }
  const generate = makeRequestGenerator(tenant, Number(values.seed))
  const compareOne = async () => {
    const request = generate()
    // In the second round the response comes from the cache where it can be cached.
    for (const round of ["first", "second"]) {
      const [before, after] = await Promise.all(targets.map(({ port }) => exchange(port, request)))
      compared++
      const status = /^HTTP\/1\.1 (\d{3})/.exec(after!)?.[1] ?? "none"
      statuses.set(status, (statuses.get(status) ?? 0) + 1)
      if (normalize(before!) === normalize(after!)) continue
      if (++different <= shownDifferences)
        console.log(JSON.stringify({ round, request, before, after }, null, 2))
    }
  }
  let remaining = Number(values.requests)
  const lane = async () => {
    while (remaining-- > 0) await compareOne()
  }
  await Promise.all(Array.from({ length: lanes }, lane))
} finally {
  for (const { process: child } of targets) {
    const exited = once(child, "exit")
    child.kill("SIGTERM")
    await exited
  }
  await resources.release()
  await rm(directory, { recursive: true })
}
console.log(`${compared} responses compared, ${different} differ`, Object.fromEntries([...statuses].sort()))
process.exitCode = different === 0 ? 0 : 1
