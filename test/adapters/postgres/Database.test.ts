import { once } from "node:events"
import { type AddressInfo, createServer, type Socket } from "node:net"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { Database } from "../../../src/adapters/postgres/Database.ts"
import { Unavailable } from "../../../src/application/Unavailable.ts"
import { emptyDatabase, freshDatabase, noPostgres, onServer, proxyTo } from "../../support/postgres.ts"

const select1 = { text: "select 1 as one", params: [] }
const read = (text: string, params: ReadonlyArray<unknown> = []) =>
  Effect.flatMap(Database, (database) => database.read({ text, params }))

const on = (url: string) => Effect.provide(Database.layer({ url: Redacted.make(url) }))

const many = <A>(count: number, value: A): ReadonlyArray<A> => Array.from({ length: count }, () => value)

/** How long something took, in milliseconds. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const start = performance.now()
    return Effect.map(effect, (value) => ({ value, millis: performance.now() - start }))
  })

/** A port of loopback on which a server listens until the scope closes; it answers nothing. */
const silentServer = Effect.map(
  Effect.acquireRelease(
    Effect.promise(async () => {
      const sockets = new Set<Socket>()
      const server = createServer((socket) => {
        sockets.add(socket.on("error", () => socket.destroy()))
      })
      await once(server.listen(0, "127.0.0.1"), "listening")
      return { server, sockets }
    }),
    ({ server, sockets }) =>
      Effect.promise(async () => {
        const closed = once(server, "close")
        server.close()
        for (const socket of sockets) socket.destroy()
        await closed
      })
  ),
  ({ server }) => (server.address() as AddressInfo).port
)

describe("a PostgreSQL that is not there", () => {
  it.live("is unavailable at once where nothing listens, and the layer is built all the same", () =>
    Effect.gen(function* () {
      const port = yield* Effect.scoped(silentServer)
      const { value, millis } = yield* timed(
        Effect.flip(read("select 1")).pipe(on(`postgres://postgres@127.0.0.1:${port}/none`))
      )
      assert.strictEqual(value, Unavailable)
      assert.isBelow(millis, 1000)
    })
  )

  it.live(
    "is unavailable within its deadlines where something listens and is silent, for reads and writes",
    () =>
      Effect.gen(function* () {
        const url = `postgres://postgres@127.0.0.1:${yield* silentServer}/none`
        const { value, millis } = yield* timed(
          Effect.gen(function* () {
            const { read, lookUp, transact } = yield* Database
            const sql = yield* PgClient.PgClient
            const failures = [read(select1), lookUp(select1), transact(sql`select 1`)].map(Effect.flip)
            return yield* Effect.all(failures, { concurrency: "unbounded" })
          }).pipe(on(url))
        )
        assert.deepStrictEqual(value, [Unavailable, Unavailable, Unavailable])
        assert.isBelow(millis, 1500)
      })
  )
})

describe.skipIf(noPostgres !== undefined)("a PostgreSQL that fails", () => {
  it.live("that freezes is unavailable within the deadline and read again once it thaws", () =>
    Effect.gen(function* () {
      const proxy = yield* proxyTo(yield* freshDatabase)
      yield* Effect.gen(function* () {
        const [before] = yield* read("select pg_backend_pid() as pid")
        yield* proxy.freeze
        const { value, millis } = yield* timed(
          Effect.all(
            Array.from({ length: 40 }, () => Effect.flip(read("select 1"))),
            { concurrency: "unbounded" }
          )
        )
        assert.deepStrictEqual(value, Array(40).fill(Unavailable))
        assert.isBelow(millis, 4500)
        yield* proxy.thaw
        const after = yield* timed(read("select pg_backend_pid() as pid"))
        assert.isBelow(after.millis, 1000)
        // A connection that was silent is not used again, though it stayed open.
        assert.notStrictEqual(after.value[0]?.pid, before?.pid)
      }).pipe(on(proxy.url))
    })
  )

  it.live("that drops connections is read a second time", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      yield* Effect.gen(function* () {
        const [before] = yield* read("select pg_backend_pid() as pid")
        yield* proxy.cut
        const [after] = yield* read("select pg_backend_pid() as pid")
        assert.notStrictEqual(after?.pid, before?.pid)
        // In the middle of a statement, by the server itself.
        const reading = yield* Effect.forkChild(read("select pg_sleep(0.3), 'again' as answer"))
        yield* Effect.sleep("100 millis")
        yield* onServer(
          `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}'`
        )
        const [row] = yield* Fiber.join(reading)
        assert.strictEqual(row?.answer, "again")
      }).pipe(on(proxy.url))
    })
  )

  it.live(
    "that ends every backend, one shortly after the other, in the middle of reads, fails none of them",
    () =>
      Effect.gen(function* () {
        const slow = Effect.map(
          read("select pg_sleep(0.05), pg_backend_pid() as pid"),
          ([row]) => row?.pid as number
        )
        for (let round = 0; round < 2; round++) {
          const before = new Set(yield* Effect.all(many(24, slow), { concurrency: "unbounded" }))
          assert.strictEqual(before.size, 3)
          const reading = yield* Effect.forkChild(Effect.all(many(100, slow), { concurrency: 40 }))
          // A read that is repeated on another of these is lost again.
          yield* onServer(
            `select pg_terminate_backend(pid), pg_sleep(0.1) from unnest(array[${[...before].join()}]) pid`
          )
          assert.isFalse((yield* Fiber.join(reading)).slice(-16).some((pid) => before.has(pid)))
        }
      }).pipe(Effect.provide(emptyDatabase))
  )

  it.live("is unavailable after a second where no connection comes free, which is said to be no outage", () =>
    Effect.gen(function* () {
      const lines: Array<unknown> = []
      const logger = Logger.make(({ message }) => void lines.push(message))
      yield* Effect.gen(function* () {
        // As many as the pool's three connections take at once, eight behind each other on each.
        const holding = yield* Effect.forkChild(
          Effect.all(many(24, Effect.exit(read("select pg_sleep(1.5)"))), { concurrency: "unbounded" })
        )
        yield* Effect.sleep("200 millis")
        const { value, millis } = yield* timed(Effect.flip(read("select 1")))
        assert.strictEqual(value, Unavailable)
        assert.isAtLeast(millis, 950)
        assert.isBelow(millis, 1300)
        assert.deepStrictEqual(lines, [
          ["A read waited 1 s while all connections of its pool were busy; responded 503"]
        ])
        yield* Fiber.interrupt(holding)
      }).pipe(Effect.provide(emptyDatabase), Effect.provide(Logger.layer([logger])))
    })
  )

  it.live(
    "logs once that reads exceed the statement timeout, though others succeed, and not that PostgreSQL is unavailable",
    () => {
      const lines: Array<unknown> = []
      const logger = Logger.make(({ message }) => void lines.push(message))
      return Effect.gen(function* () {
        const slow = read("select pg_sleep(4)")
        assert.strictEqual(yield* Effect.flip(slow), Unavailable)
        assert.deepStrictEqual(yield* read("select 1 as one"), [{ one: 1 }])
        yield* Effect.flip(slow)
        assert.deepStrictEqual(lines, [["A read exceeded the 3 s statement timeout; responded 503"]])
        const canceled = yield* Effect.forkChild(Effect.flip(read("select pg_sleep(2), 'canceled by hand'")))
        yield* Effect.sleep("200 millis")
        // Over another pool: a read could wait on the connection that sleeps.
        const sql = yield* PgClient.PgClient
        yield* sql`select pg_cancel_backend(pid) from pg_stat_activity
          where query like '%canceled by hand%' and pid <> pg_backend_pid()`
        yield* Fiber.join(canceled)
        assert.deepStrictEqual(lines.slice(1), [
          ["PostgreSQL did not complete a statement (canceling statement due to user request); responded 503"]
        ])
      }).pipe(Effect.provide(emptyDatabase), Effect.provide(Logger.layer([logger])))
    }
  )

  it.live("is unavailable after three seconds of one statement, whatever stands behind a lock", () =>
    Effect.gen(function* () {
      const { read, lookUp, transact } = yield* Database
      const sql = yield* PgClient.PgClient
      yield* sql`create table held ()`
      yield* transact(
        Effect.gen(function* () {
          yield* sql`lock table held in access exclusive mode`
          const blocked = yield* Effect.forkChild(
            timed(Effect.flip(read({ text: "select count(*) from held", params: [] })))
          )
          // A look-up of a key does not stand behind it.
          for (let i = 0; i < 20; i++) {
            assert.isBelow((yield* timed(lookUp(select1))).millis, 1000)
          }
          const { value, millis } = yield* Fiber.join(blocked)
          assert.strictEqual(value, Unavailable)
          assert.isAtLeast(millis, 2900)
          assert.isBelow(millis, 4500)
        })
      )
    }).pipe(Effect.provide(emptyDatabase))
  )

  it.live("without a connection to spare is unavailable", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      yield* onServer(`alter database ${database} connection limit 0`)
      // A superuser is never refused so: the role that reads must be another.
      const role = `${database}_reader`
      yield* Effect.acquireRelease(onServer(`create role ${role} login`), () => onServer(`drop role ${role}`))
      const url = new URL(proxy.url)
      url.username = role
      assert.strictEqual(yield* Effect.flip(read("select 1")).pipe(on(url.href)), Unavailable)
    })
  )

  it.live("has defects for what is no outage, and reads on", () =>
    Effect.gen(function* () {
      for (const text of ["select 1/0", "selec", "select * from nowhere"]) {
        const exit = yield* Effect.exit(read(text))
        assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause), text)
      }
      assert.deepStrictEqual(yield* read("select 1 as one"), [{ one: 1 }])
    }).pipe(Effect.provide(emptyDatabase))
  )

  it.live("gives times as the domain's text, to the ends of what it can write", () =>
    Effect.gen(function* () {
      const times = [
        "0001-01-01T00:00:00.000Z",
        "1969-12-31T23:59:59.999Z",
        "2000-01-01T00:00:00.001Z",
        "2026-01-02T03:04:05.678Z",
        "9999-12-31T23:59:59.999Z"
      ]
      const [row] = yield* read("select $1::timestamptz[] as times", [times])
      assert.deepStrictEqual(row, { times })
      const [settings] = yield* read(
        `select current_setting('TimeZone') as zone, current_setting('statement_timeout') as timeout,
          current_setting('application_name') as name`
      )
      assert.deepStrictEqual(settings, { zone: "UTC", timeout: "3s", name: "prompt-retrieval" })
    }).pipe(Effect.provide(emptyDatabase))
  )

  it.live("gives each of many readers its own answer over few connections", () =>
    Effect.gen(function* () {
      const numbers = Array.from({ length: 2000 }, (_, index) => index)
      const rows = yield* Effect.forEach(
        numbers,
        (number) => read("select $1::int as number, pg_backend_pid() as pid", [number]),
        { concurrency: 100 }
      )
      assert.deepStrictEqual(
        rows.map(([row]) => row?.number),
        numbers
      )
      assert.isAtMost(new Set(rows.map(([row]) => row?.pid)).size, 3)
    }).pipe(Effect.provide(emptyDatabase))
  )
})
