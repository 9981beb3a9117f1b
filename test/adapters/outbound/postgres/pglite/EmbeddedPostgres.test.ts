import { type ChildProcess, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { DataDirectoryBusy } from "../../../../../src/adapters/outbound/postgres/pglite/DataDirectory.ts"
import { embeddedMajor } from "../../../../../src/adapters/outbound/postgres/pglite/PgliteSession.ts"
import * as EmbeddedPostgres from "../../../../../src/adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"
import { databaseDirectory, kill, serve, requireSocketPath, stop, temporaryDirectory } from "./processes.ts"
import { RawClient } from "./RawClient.ts"

/** Opens the database of a directory, or connects to it, in this process, and returns the error. */
const openError = (method: typeof EmbeddedPostgres.open | typeof EmbeddedPostgres.connect, dataDir: string) =>
  Effect.runPromise(Effect.flip(Effect.scoped(Effect.asVoid(method({ dataDir })))))

describe("EmbeddedPostgres", () => {
  it("open creates a missing directory for its user only; other processes cannot open it but can connect", async () => {
    const dataDir = join(temporaryDirectory(), "new")
    const socketPath = join(dataDir, ".s.PGSQL.5432")
    const owner = await serve(dataDir, "open")
    assert.deepStrictEqual(owner.report, { socketPath, served: true })
    assert.deepStrictEqual(
      [statSync(dataDir).mode & 0o777, statSync(socketPath).mode & 0o777],
      [0o700, 0o600]
    )
    const pid = owner.child.pid
    const busy = new DataDirectoryBusy({ path: dataDir, pid })
    assert.deepStrictEqual(await openError(EmbeddedPostgres.open, dataDir), busy)
    assert.strictEqual(busy.message, `${dataDir} is in use by another process (pid ${pid})`)
    const guest = await serve(dataDir, "connect")
    assert.deepStrictEqual(guest.report, { socketPath, served: false })
    assert.deepStrictEqual(await Promise.all([stop(guest.child), stop(owner.child)]), [0, 0])
    assert.isFalse(existsSync(socketPath))
  })

  it("after SIGKILL of its owner a directory can be opened again, with everything that was committed", async () => {
    const dataDir = await databaseDirectory()
    const served = { socketPath: join(dataDir, ".s.PGSQL.5432"), served: true }
    let owner = await serve(dataDir, "open")
    const client = await RawClient.connect(requireSocketPath(owner))
    await client.query("create table numbers (n int primary key)")
    await client.drop()
    let last = -1
    for (let round = 0; round < 4; round++) {
      const confirmed = await insertUntilKilled(owner.child, requireSocketPath(owner), 20 + 37 * round)
      owner = await serve(dataDir, round % 2 === 0 ? "open" : "connect")
      assert.deepStrictEqual(owner.report, served)
      const reader = await RawClient.connect(requireSocketPath(owner))
      const { rows } = await reader.query("select count(*), max(n) from numbers")
      await reader.drop()
      const [count, max] = rows[0]!.map(Number)
      assert.strictEqual(count, max! + 1)
      // The last insert may have been committed without a response.
      assert.isTrue(
        confirmed > last && (max === confirmed || max === confirmed + 1),
        `${max} of ${confirmed}`
      )
      last = max!
    }
    await stop(owner.child)
  })

  it("processes that connect at the same time share one database, served by one of them", async () => {
    const dataDir = await databaseDirectory()
    const all = await Promise.all([1, 2, 3].map(() => serve(dataDir, "connect")))
    const socketPath = join(dataDir, ".s.PGSQL.5432")
    assert.deepStrictEqual(
      all
        .map(({ report }) => report)
        .sort((a, b) => Number("served" in b && b.served) - Number("served" in a && a.served)),
      [true, false, false].map((served) => ({ socketPath, served }))
    )
    await Promise.all(all.map(({ child }) => stop(child)))
  })

  it("a directory whose path is too long for a socket has its socket in a private directory elsewhere", async () => {
    const dataDir = join(temporaryDirectory(), "long".repeat(30))
    cpSync(await databaseDirectory(), dataDir, { recursive: true })
    const killed = await serve(dataDir, "open")
    await kill(killed.child)
    const owner = await serve(dataDir, "open")
    const path = requireSocketPath(owner)
    assert.isTrue(Buffer.byteLength(path) <= 107 && !path.startsWith(dataDir), path)
    assert.strictEqual(statSync(dirname(path)).mode & 0o777, 0o700)
    assert.isFalse(existsSync(dirname(requireSocketPath(killed))))
    assert.strictEqual(readFileSync(join(dataDir, "socket"), "utf8"), path)
    const guest = await serve(dataDir, "connect")
    assert.deepStrictEqual(guest.report, { socketPath: path, served: false })
    const client = await RawClient.connect(path)
    assert.deepStrictEqual((await client.query("select 1")).rows, [["1"]])
    await client.drop()
    assert.deepStrictEqual(await Promise.all([stop(guest.child), stop(owner.child)]), [0, 0])
    assert.deepStrictEqual([existsSync(dirname(path)), existsSync(join(dataDir, "socket"))], [false, false])
  })

  it("open starts over when the creation of the database was interrupted", async () => {
    const dataDir = temporaryDirectory()
    mkdirSync(join(dataDir, "pglite"))
    writeFileSync(join(dataDir, "pglite", "PG_VERSION"), "18\n")
    writeFileSync(join(dataDir, "pglite.creating"), "")
    const program = Effect.gen(function* () {
      const { socketPath } = yield* EmbeddedPostgres.open({ dataDir })
      const client = yield* Effect.promise(() => RawClient.connect(socketPath))
      return (yield* Effect.promise(() => client.query("select 1"))).rows
    })
    assert.deepStrictEqual(await Effect.runPromise(Effect.scoped(program)), [["1"]])
    assert.isFalse(existsSync(join(dataDir, "pglite.creating")))
  })

  it("a path that cannot hold a database fails with an error that names the path, and stays unchanged", async () => {
    const parent = temporaryDirectory()
    const file = join(parent, "file")
    writeFileSync(file, "")
    const oldVersion = join(parent, "old-version")
    mkdirSync(join(oldVersion, "pglite"), { recursive: true })
    writeFileSync(join(oldVersion, "pglite", "PG_VERSION"), "12\n")
    for (const dataDir of [file, join(file, "inside"), oldVersion]) {
      for (const method of [EmbeddedPostgres.open, EmbeddedPostgres.connect]) {
        const error = await openError(method, dataDir)
        assert.strictEqual(error._tag, "DataDirectoryUnusable")
        assert.match(error.message, new RegExp(`^${dataDir} cannot be used: \\w`))
      }
    }
    assert.strictEqual(readFileSync(join(oldVersion, "pglite", "PG_VERSION"), "utf8"), "12\n")
  })
})

describe("a data directory of another PostgreSQL version", () => {
  it.each(["16", "17", "19"])(
    "is rejected with both versions and the commands that migrate the data: %s",
    async (major) => {
      const dataDir = temporaryDirectory()
      mkdirSync(join(dataDir, "pglite"))
      writeFileSync(join(dataDir, "pglite", "PG_VERSION"), `${major}\n`)
      const error = await openError(EmbeddedPostgres.open, dataDir)
      assert.strictEqual(
        error.message,
        `${dataDir} cannot be used: it holds a PostgreSQL ${major} database and this program embeds PostgreSQL 18; to carry the data over, run "prompt-retrieval export" for each workspace with the version of the program that wrote it, then "prompt-retrieval import" with this version on an empty DATA_DIR`
      )
      const program = spawnSync(process.execPath, ["src/main.ts", "migrate"], {
        env: { ...process.env, DATABASE_URL: undefined, DATA_DIR: dataDir },
        encoding: "utf8"
      })
      assert.deepStrictEqual(
        [program.status, program.stdout, program.stderr],
        [1, "", `prompt-retrieval: DATA_DIR: ${error.message}\n`]
      )
    }
  )

  it("PGlite writes the embedded major version to PG_VERSION", async () => {
    const dataDir = await databaseDirectory()
    assert.strictEqual(readFileSync(join(dataDir, "pglite", "PG_VERSION"), "utf8").trim(), embeddedMajor)
  })
})

/** Inserts the next number repeatedly, kills the server meanwhile, and returns the last number with a response. */
const insertUntilKilled = async (
  server: ChildProcess,
  socketPath: string,
  inserts: number
): Promise<number> => {
  const client = await RawClient.connect(socketPath)
  let killed: Promise<unknown> | undefined
  let confirmed = -1
  for (let i = 0; i < inserts + 10_000; i++) {
    if (i === inserts) killed = kill(server)
    const response = await client.query(
      "insert into numbers select coalesce(max(n), -1) + 1 from numbers returning n"
    )
    if (response.status === "closed") break
    confirmed = Number(response.rows[0]![0])
  }
  await killed
  return confirmed
}

describe("closing the database", () => {
  it("lets an open transaction finish and accepts no new connection", async () => {
    const owner = await serve(await databaseDirectory(), "open")
    const connect = () => RawClient.connect(requireSocketPath(owner))
    const [busy, quiet] = [await connect(), await connect()]
    await busy.query("begin; create table finished (a int)")
    const stopped = stop(owner.child)
    assert.deepStrictEqual((await quiet.readResponse()).errors, ["57P01"])
    assert.deepStrictEqual(
      await connect().then(
        () => "connected",
        (error) => error.code
      ),
      "ENOENT"
    )
    assert.deepStrictEqual((await busy.query("commit")).tags, ["COMMIT"])
    assert.deepStrictEqual((await busy.readResponse()).errors, ["57P01"])
    assert.strictEqual(await stopped, 0)
  })
})
