import { type ChildProcess, spawnSync } from "node:child_process"
import { cpSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { embeddedMajor } from "../../../src/adapters/embedded/Database.ts"
import * as EmbeddedPostgres from "../../../src/adapters/embedded/EmbeddedPostgres.ts"
import { databaseDirectory, kill, serve, socketPathOf, stop, temporaryDirectory } from "./processes.ts"
import { RawClient } from "./RawClient.ts"

/** What an attempt to have the database of a directory in this process fails with. */
const refusal = (reach: typeof EmbeddedPostgres.open | typeof EmbeddedPostgres.connect, dataDir: string) =>
  Effect.runPromise(Effect.flip(Effect.scoped(Effect.asVoid(reach({ dataDir })))))

describe("a data directory", { timeout: 30_000 }, () => {
  it("is made where it is missing, for its user alone, and has one owner, whom others reach", async () => {
    const dataDir = join(temporaryDirectory(), "made")
    const socketPath = join(dataDir, ".s.PGSQL.5432")
    const owner = await serve(dataDir, "open")
    assert.deepStrictEqual(owner.said, { socketPath, served: true })
    assert.deepStrictEqual(
      [statSync(dataDir).mode & 0o777, statSync(socketPath).mode & 0o777],
      [0o700, 0o600]
    )
    const busy = new EmbeddedPostgres.DataDirectoryBusy({ path: dataDir })
    assert.deepStrictEqual(await refusal(EmbeddedPostgres.open, dataDir), busy)
    assert.strictEqual(busy.message, `${dataDir} is in use by another process`)
    const guest = await serve(dataDir, "connect")
    assert.deepStrictEqual(guest.said, { socketPath, served: false })
    assert.deepStrictEqual(await Promise.all([stop(guest.child), stop(owner.child)]), [0, 0])
    assert.isFalse(existsSync(socketPath))
  })

  it("is free again after SIGKILL, and has lost nothing that was committed", async () => {
    const dataDir = await databaseDirectory()
    const served = { socketPath: join(dataDir, ".s.PGSQL.5432"), served: true }
    let owner = await serve(dataDir, "open")
    const client = await RawClient.connect(socketPathOf(owner))
    await client.query("create table numbers (n int primary key)")
    await client.drop()
    let last = -1
    for (let round = 0; round < 4; round++) {
      const confirmed = await insertUntilKilled(owner.child, socketPathOf(owner), 20 + 37 * round)
      owner = await serve(dataDir, round % 2 === 0 ? "open" : "connect")
      assert.deepStrictEqual(owner.said, served)
      const reader = await RawClient.connect(socketPathOf(owner))
      const { rows } = await reader.query("select count(*), max(n) from numbers")
      await reader.drop()
      const [count, max] = rows[0]!.map(Number)
      assert.strictEqual(count, max! + 1)
      // The last one may have been committed and not confirmed.
      assert.isTrue(
        confirmed > last && (max === confirmed || max === confirmed + 1),
        `${max} of ${confirmed}`
      )
      last = max!
    }
    await stop(owner.child)
  })

  it("is reached by all who start at once, on one database", async () => {
    const dataDir = await databaseDirectory()
    const all = await Promise.all([1, 2, 3].map(() => serve(dataDir, "connect")))
    const socketPath = join(dataDir, ".s.PGSQL.5432")
    assert.deepStrictEqual(
      all
        .map(({ said }) => said)
        .sort(
          (one, other) => Number("served" in other && other.served) - Number("served" in one && one.served)
        ),
      [true, false, false].map((served) => ({ socketPath, served }))
    )
    await Promise.all(all.map(({ child }) => stop(child)))
  })

  it("may have too long a path for a socket: then the socket is elsewhere, for its user alone", async () => {
    const dataDir = join(temporaryDirectory(), "long".repeat(30))
    cpSync(await databaseDirectory(), dataDir, { recursive: true })
    const killed = await serve(dataDir, "open")
    await kill(killed.child)
    const owner = await serve(dataDir, "open")
    const path = socketPathOf(owner)
    assert.isTrue(Buffer.byteLength(path) <= 107 && !path.startsWith(dataDir), path)
    assert.strictEqual(statSync(dirname(path)).mode & 0o777, 0o700)
    assert.isFalse(existsSync(dirname(socketPathOf(killed))))
    assert.strictEqual(readFileSync(join(dataDir, "socket"), "utf8"), path)
    const guest = await serve(dataDir, "connect")
    assert.deepStrictEqual(guest.said, { socketPath: path, served: false })
    const client = await RawClient.connect(path)
    assert.deepStrictEqual((await client.query("select 1")).rows, [["1"]])
    await client.drop()
    assert.deepStrictEqual(await Promise.all([stop(guest.child), stop(owner.child)]), [0, 0])
    assert.deepStrictEqual([existsSync(dirname(path)), existsSync(join(dataDir, "socket"))], [false, false])
  })

  it("is begun anew when its creation was cut short", async () => {
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

  it("that can't be one is refused by its name, and stays as it is", async () => {
    const parent = temporaryDirectory()
    const file = join(parent, "file")
    writeFileSync(file, "")
    const strange = join(parent, "strange")
    mkdirSync(join(strange, "pglite"), { recursive: true })
    writeFileSync(join(strange, "pglite", "PG_VERSION"), "12\n")
    for (const dataDir of [file, join(file, "inside"), strange]) {
      for (const reach of [EmbeddedPostgres.open, EmbeddedPostgres.connect]) {
        const error = await refusal(reach, dataDir)
        assert.strictEqual(error._tag, "DataDirectoryUnusable")
        assert.match(error.message, new RegExp(`^${dataDir} can't be used: \\w`))
      }
    }
    assert.strictEqual(readFileSync(join(strange, "pglite", "PG_VERSION"), "utf8"), "12\n")
  })
})

describe("a data directory of another PostgreSQL version", { timeout: 30_000 }, () => {
  it.each(["16", "17", "19"])(
    "is refused by both versions, with the way to carry the data over: %s",
    async (major) => {
      const dataDir = temporaryDirectory()
      mkdirSync(join(dataDir, "pglite"))
      writeFileSync(join(dataDir, "pglite", "PG_VERSION"), `${major}\n`)
      const error = await refusal(EmbeddedPostgres.open, dataDir)
      assert.strictEqual(
        error.message,
        `${dataDir} can't be used: it holds a PostgreSQL ${major} database and this program embeds PostgreSQL 18; to carry the data over, run "prompt-retrieval export" for each workspace with the version of the program that wrote it, then "prompt-retrieval import" with this version on an empty DATA_DIR`
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

  it("is detected by the version that PGlite itself writes", async () => {
    const dataDir = await databaseDirectory()
    assert.strictEqual(readFileSync(join(dataDir, "pglite", "PG_VERSION"), "utf8").trim(), embeddedMajor)
  })
})

/** Inserts 0, 1, 2, … on what is there, kills the server in the middle of it, and gives the last that was confirmed. */
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
    const answer = await client.query(
      "insert into numbers select coalesce(max(n), -1) + 1 from numbers returning n"
    )
    if (answer.status === "closed") break
    confirmed = Number(answer.rows[0]![0])
  }
  await killed
  return confirmed
}

describe("closing", { timeout: 30_000 }, () => {
  it("lets a transaction finish that is under way, and takes no new connection", async () => {
    const owner = await serve(await databaseDirectory(), "open")
    const connect = () => RawClient.connect(socketPathOf(owner))
    const [busy, quiet] = [await connect(), await connect()]
    await busy.query("begin; create table finished (a int)")
    const stopped = stop(owner.child)
    assert.deepStrictEqual((await quiet.answer()).errors, ["57P01"])
    assert.deepStrictEqual(
      await connect().then(
        () => "connected",
        (error) => error.code
      ),
      "ENOENT"
    )
    assert.deepStrictEqual((await busy.query("commit")).tags, ["COMMIT"])
    assert.deepStrictEqual((await busy.answer()).errors, ["57P01"])
    assert.strictEqual(await stopped, 0)
  })
})
