import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as EmbeddedPostgres from "../../../src/adapters/embedded/EmbeddedPostgres.ts"
import { kill, serve, socketPathOf, stop, temporaryDirectory } from "./processes.ts"
import { RawClient } from "./RawClient.ts"

describe("a data directory", { timeout: 60_000 }, () => {
  it("has one owner, whom others reach, until that owner ends in whatever way; what it committed stays", async () => {
    const dataDir = join(temporaryDirectory(), "made")
    const first = await serve(dataDir, "open")
    assert.deepStrictEqual(first.said, { socketPath: join(dataDir, ".s.PGSQL.5432"), served: true })
    assert.deepStrictEqual(
      [statSync(dataDir).mode & 0o777, statSync(join(dataDir, ".s.PGSQL.5432")).mode & 0o777],
      [0o700, 0o600]
    )
    assert.deepStrictEqual(
      await Effect.runPromise(Effect.flip(Effect.scoped(EmbeddedPostgres.open({ dataDir })))),
      new EmbeddedPostgres.DataDirectoryBusy({ path: dataDir })
    )
    assert.deepStrictEqual((await serve(dataDir, "open")).said, {
      error: "DataDirectoryBusy",
      message: `${dataDir} is in use by another process`
    })
    const guest = await serve(dataDir, "connect")
    assert.deepStrictEqual(guest.said, { socketPath: socketPathOf(first), served: false })
    assert.strictEqual(await stop(guest.child), 0)

    const client = await RawClient.connect(socketPathOf(first))
    await client.query("create table numbers (n int primary key)")
    await client.drop()
    let owner = first
    let confirmed = -1
    for (let round = 0; round < 4; round++) {
      const writer = await RawClient.connect(socketPathOf(owner))
      const dying = 20 + 37 * round
      for (let i = 0; ; i++) {
        if (i === dying) void kill(owner.child)
        const answer = await writer.query(
          `insert into numbers select coalesce(max(n), -1) + 1 from numbers returning n`
        )
        if (answer.status === "closed") break
        confirmed = Number(answer.rows[0]![0])
      }
      await kill(owner.child)
      owner = await serve(dataDir, round % 2 === 0 ? "connect" : "open")
      assert.deepStrictEqual(owner.said, {
        socketPath: join(dataDir, ".s.PGSQL.5432"),
        served: true
      })
      const reader = await RawClient.connect(socketPathOf(owner))
      const [row] = (await reader.query("select count(*), max(n) from numbers")).rows
      const [count, max] = row!.map(Number)
      await reader.drop()
      assert.strictEqual(count, max! + 1)
      // One more may have been committed than was confirmed.
      assert.isTrue(max === confirmed || max === confirmed + 1, `${max} of ${confirmed}`)
      confirmed = max!
    }
    assert.strictEqual(await stop(owner.child), 0)
    assert.isFalse(existsSync(join(dataDir, ".s.PGSQL.5432")))
  })

  it("is reached by all who start at once, on one database", async () => {
    const dataDir = temporaryDirectory()
    const all = await Promise.all([1, 2, 3].map(() => serve(dataDir, "connect")))
    assert.deepStrictEqual(
      all.map(({ said }) => said).filter((said) => "served" in said && said.served).length,
      1
    )
    const paths = new Set(all.map(socketPathOf))
    assert.deepStrictEqual([...paths], [join(dataDir, ".s.PGSQL.5432")])
    await Promise.all(all.map(({ child }) => stop(child)))
  })

  it("may have too long a path for a socket: then the socket is elsewhere, for its user alone", async () => {
    const dataDir = join(temporaryDirectory(), "long".repeat(30))
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

  it("that can't be one is refused by its name", async () => {
    const file = join(temporaryDirectory(), "file")
    writeFileSync(file, "")
    for (const dataDir of [file, join(file, "inside")]) {
      for (const reach of [EmbeddedPostgres.open, EmbeddedPostgres.connect]) {
        const error = await Effect.runPromise(Effect.flip(Effect.scoped(reach({ dataDir }))))
        assert.strictEqual(error._tag, "DataDirectoryUnusable")
        assert.include(error.message, dataDir)
      }
    }
  })
})

describe("closing", () => {
  it("lets a transaction finish that is under way, and takes no new connection", {
    timeout: 30_000
  }, async () => {
    const owner = await serve(temporaryDirectory(), "open")
    const [busy, quiet] = await Promise.all([1, 2].map(() => RawClient.connect(socketPathOf(owner))))
    await busy!.query("begin; create table finished (a int)")
    const stopped = stop(owner.child)
    assert.deepStrictEqual((await quiet!.answer()).errors, ["57P01"])
    assert.deepStrictEqual(
      await RawClient.dial(socketPathOf(owner)).then(
        () => "connected",
        (error) => error.code
      ),
      "ENOENT"
    )
    assert.deepStrictEqual((await busy!.query("commit")).tags, ["COMMIT"])
    assert.deepStrictEqual((await busy!.answer()).errors, ["57P01"])
    assert.strictEqual(await stopped, 0)
  })
})
