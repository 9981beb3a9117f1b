import { type ChildProcess, fork, spawn } from "node:child_process"
import { once } from "node:events"
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync
} from "node:fs"
import { join } from "node:path"
import { afterAll, assert, expect, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { copyPackage } from "../../../../../src/adapters/outbound/postgres/embedded/PostgresPrograms.ts"
import { connectClient } from "../../../../support/database/server.ts"
import { makeResources } from "../../../../support/makeResources.ts"
import { run } from "../../../../support/services/startService.ts"
import { temporaryDirectory } from "../../../../support/testDirectory.ts"

const resources = makeResources()
const makeDirectory = () => resources.acquire(temporaryDirectory("embedded-"))
const children = new Set<ChildProcess>()
const servePath = join(import.meta.dirname, "serve.ts")

afterAll(async () => {
  for (const child of children) child.kill("SIGKILL")
  await resources.release()
})

interface Report {
  readonly url?: string
  readonly error?: string
}

const serve = async (method: "open" | "connect", dataDir: string) => {
  const child = fork(servePath, [method, dataDir], { stdio: ["ignore", "pipe", "inherit", "ipc"] })
  children.add(child)
  let output = ""
  child.stdout!.on("data", (chunk) => (output += chunk))
  const [report] = (await once(child, "message")) as [Report]
  return { child, report, output: () => output }
}

const end = async (child: ChildProcess, signal: "SIGTERM" | "SIGKILL"): Promise<number | null> => {
  children.delete(child)
  const exit = once(child, "exit")
  child.kill(signal)
  return (await exit)[0]
}

/** Runs one query on a new connection to the database whose URL the report contains. */
const query = ({ url = "" }: Report, text: string): Promise<ReadonlyArray<object>> =>
  Effect.runPromise(Effect.scoped(Effect.flatMap(connectClient(url), (sql) => sql.unsafe(text))))

const expectOne = async (report: Report) =>
  assert.deepStrictEqual(await query(report, "select 1 as one"), [{ one: 1 }])

const serverFile = (dataDir: string): string => join(dataDir, "postgresql", "postmaster.pid")

const readServerPid = (dataDir: string): number =>
  Number.parseInt(readFileSync(serverFile(dataDir), "utf8"), 10)

it("EmbeddedPostgres creates a UTF-8 database that keeps committed data, and only the owner of the directory can connect to the database", async () => {
  const dataDir = join(await makeDirectory(), "new")
  const owner = await serve("open", dataDir)
  const settings = "server_encoding fsync listen_addresses".split(" ")
  const values = settings.map((name) => `current_setting('${name}') as ${name}`)
  assert.deepStrictEqual(await query(owner.report, `select ${values.join()}`), [
    { server_encoding: "UTF8", fsync: "on", listen_addresses: "" }
  ])
  assert.strictEqual(statSync(dataDir).mode & 0o777, 0o700)
  assert.strictEqual(statSync(join(dataDir, ".s.PGSQL.5432")).mode & 0o777, 0o700)
  assert.strictEqual(await end(owner.child, "SIGTERM"), 0)
  assert.deepStrictEqual(readdirSync(dataDir).sort(), ["lock", "postgresql"])
})

it("EmbeddedPostgres runs once per directory: open fails in a second process, and connect uses the running server", async () => {
  const dataDir = await makeDirectory()
  const all = await Promise.all([1, 2, 3].map(() => serve("connect", dataDir)))
  for (const { report } of all) await expectOne(report)
  const second = await serve("open", dataDir)
  assert.deepStrictEqual(second.report, { error: `${dataDir} is in use by another process` })
  for (const { child } of all) assert.strictEqual(await end(child, "SIGTERM"), 0)
})

it("after a process is killed, its PostgreSQL server ends and the next process finds all committed data, even if another process has the server's process id", async () => {
  const dataDir = await makeDirectory()
  const first = await serve("open", dataDir)
  await query(first.report, "create table numbers as select 1 as n")
  await end(first.child, "SIGKILL")
  const second = await serve("open", dataDir)
  await query(second.report, "insert into numbers values (2)")
  const server = readServerPid(dataDir)
  const lock = readFileSync(serverFile(dataDir), "utf8")
  await end(second.child, "SIGKILL")
  await expect.poll(() => existsSync(`/proc/${server}`)).toBe(false)
  const { uid, gid } = statSync(join(dataDir, "postgresql"))
  const other = spawn("/bin/sleep", ["60"], { uid, gid })
  children.add(other)
  writeFileSync(serverFile(dataDir), lock.replace(/^\d+/, String(other.pid)))
  const third = await serve("open", dataDir)
  const numbers = await query(third.report, "select n from numbers order by n")
  assert.deepStrictEqual(numbers, [{ n: 1 }, { n: 2 }])
  assert.strictEqual(await end(third.child, "SIGTERM"), 0)
})

it("EmbeddedPostgres starts after an earlier start was killed while it created the database or copied the programs", async () => {
  const dataDir = await makeDirectory()
  const child = fork(servePath, ["open", dataDir], { stdio: "ignore" })
  children.add(child)
  await expect
    .poll(() => readdirSync(dataDir).join(), { timeout: 20_000 })
    .toContain("postgresql.incomplete-")
  await end(child, "SIGKILL")
  assert.isFalse(existsSync(join(dataDir, "postgresql")))
  const programs = join(dataDir, "postgresql-18-programs")
  assert.throws(() => copyPackage(join(dataDir, "none"), programs), /ENOENT/)
  assert.notInclude(readdirSync(dataDir).join(), "programs")
  mkdirSync(`${programs}.incomplete-killed`)
  const owner = await serve("open", dataDir)
  await expectOne(owner.report)
  await end(owner.child, "SIGTERM")
  assert.notInclude(readdirSync(dataDir).join(), "programs")
})

it("if PostgreSQL is killed, EmbeddedPostgres starts PostgreSQL again, and logs the reason of each failed start", async () => {
  const dataDir = await makeDirectory()
  const owner = await serve("open", dataDir)
  await query(owner.report, "create table kept ()")
  const version = join(dataDir, "postgresql", "PG_VERSION")
  writeFileSync(version, "17\n")
  process.kill(readServerPid(dataDir), "SIGKILL")
  const failure = /PostgreSQL did not start; trying again.*it holds a PostgreSQL 17 database/s
  await expect.poll(owner.output, { timeout: 20_000 }).toMatch(failure)
  writeFileSync(version, "18\n")
  const count = async () => (await query(owner.report, "select from pg_class where relname = 'kept'")).length
  await expect.poll(() => count().catch(() => 0), { timeout: 30_000 }).toBe(1)
  await end(owner.child, "SIGTERM")
})

it("if the path of a directory is too long for a socket, processes connect through a symbolic link in a private directory", async () => {
  const dataDir = join(await makeDirectory(), "long".repeat(30))
  const owner = await serve("open", dataDir)
  const guest = await serve("connect", dataDir)
  const found = [owner, guest].map(({ report }) => new URL(report.url!).searchParams.get("host") as string)
  for (const directory of found) {
    assert.strictEqual(statSync(directory).mode & 0o777, 0o700)
    assert.strictEqual(readlinkSync(join(directory, ".s.PGSQL.5432")), join(dataDir, ".s.PGSQL.5432"))
  }
  for (const { report } of [owner, guest]) await expectOne(report)
  assert.strictEqual(await end(guest.child, "SIGTERM"), 0)
  assert.strictEqual(await end(owner.child, "SIGTERM"), 0)
  assert.deepStrictEqual(found.filter(existsSync), [])
})

it("EmbeddedPostgres rejects a symbolic link in place of its lock file", async () => {
  const dataDir = await makeDirectory()
  const created = join(await makeDirectory(), "created")
  symlinkSync(created, join(dataDir, "lock"))
  const { report } = await serve("open", dataDir)
  assert.match(report.error ?? "", /cannot be used: ELOOP/)
  assert.isFalse(existsSync(created))
})

it("EmbeddedPostgres rejects a database of PostgreSQL 17, with an error of one line that says how to keep the data", async () => {
  const dataDir = await makeDirectory()
  mkdirSync(join(dataDir, "postgresql"))
  writeFileSync(join(dataDir, "postgresql", "PG_VERSION"), "17\n")
  const problem =
    'it holds a PostgreSQL 17 database and this program embeds PostgreSQL 18; to carry the data over, run "prompt-retrieval export" for each workspace with the version of the program that wrote it, then "prompt-retrieval import" with this version on an empty DATA_DIR'
  assert.deepStrictEqual(await run(["migrate"], { DATA_DIR: dataDir }), {
    code: 1,
    stdout: "",
    stderr: `prompt-retrieval: DATA_DIR: ${dataDir} cannot be used: ${problem}\n`
  })
})
