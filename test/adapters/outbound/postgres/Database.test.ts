import { createServer } from "node:net"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import { Database } from "../../../../src/adapters/outbound/postgres/Database.ts"
import { Unavailable } from "../../../../src/application/ports/Unavailable.ts"
import { workspace } from "../../../support/archives.ts"
import { collectLog } from "../../../support/collectLog.ts"
import { emptyDatabase, freshDatabase, onServer, toDatabaseUrl } from "../../../support/database/server.ts"
import { makeTest } from "../../../support/makeTest.ts"
import { listenOnFreePort } from "../../../support/network/ports.ts"
import { proxyToUrl } from "../../../support/network/tcpProxy.ts"

const select1 = { text: "select 1 as one", params: [] }
const read = (text: string) =>
  Effect.flatMap(Database, (database) => database.queryReads({ text, params: [] }))

const withDatabase = (url: string) => Effect.provide(Database.layer({ url: Redacted.make(url) }))

const repeat = <A>(count: number, value: A): ReadonlyArray<A> => Array.from({ length: count }, () => value)

/** Starts a server that accepts connections and never responds, until the scope closes. Returns its loopback port. */
const silentServer = Effect.suspend(() => listenOnFreePort(createServer()))

const test = makeTest(it.live, emptyDatabase)

test("queries and transactions fail if the server refuses connections or never responds", function* () {
  const failures = Effect.gen(function* () {
    const { queryReads, queryKeys, transact, handleSqlErrors } = yield* Database
    const transaction = handleSqlErrors(transact("read committed", (yield* PgClient.PgClient)`select 1`))
    const attempts = [queryReads(select1), queryKeys(select1), transaction].map(Effect.flip)
    return yield* Effect.all(attempts, { concurrency: "unbounded" })
  })
  const freePort = yield* Effect.scoped(silentServer)
  for (const port of [freePort, yield* silentServer]) {
    const url = `postgres://postgres@127.0.0.1:${port}/none`
    assert.deepStrictEqual(yield* failures.pipe(withDatabase(url)), repeat(3, Unavailable))
  }
})

// The tests can run concurrently, because each has a separate database and mostly waits.
describe.concurrent("queries of a PostgreSQL server", () => {
  test("while the server is frozen, interrupted and timed-out queries fail, and their connections are not used again", function* () {
    const proxy = yield* proxyToUrl(toDatabaseUrl(yield* freshDatabase))
    yield* Effect.gen(function* () {
      for (const late of [Effect.timeout(read("select 1"), "200 millis"), read("select 1")]) {
        const [before] = yield* read("select pg_backend_pid() as pid")
        yield* proxy.freeze
        const results = yield* Effect.all(repeat(40, Effect.exit(late)), { concurrency: "unbounded" })
        assert.isTrue(results.every(Exit.isFailure))
        yield* proxy.thaw
        const [after] = yield* read("select pg_backend_pid() as pid")
        assert.notStrictEqual(after?.pid, before?.pid)
      }
    }).pipe(withDatabase(proxy.url))
  })

  test("slow statements of one workspace delay no statement of another workspace, even if the slow statements are interrupted", function* () {
    const [slow, other] = [workspace().id, workspace().id]
    const { queryReads } = yield* Database
    const sleep = Effect.exit(queryReads({ text: "select pg_sleep(2.5)", params: [], workspace: slow }))
    const countSlow = queryReads({
      text: `select count(*)::int as count from pg_stat_activity
            where datname = current_database() and state = 'active' and query = 'select pg_sleep(2.5)'`,
      params: [],
      workspace: other
    })
    const expectNoDelay = Effect.gen(function* () {
      for (let i = 0; i < 8; i++) assert.isAbove((yield* countSlow)[0]!.count as number, 0)
    })
    const opening = queryReads({ text: "select pg_sleep(0.1)", params: [] })
    yield* Effect.all(repeat(4, opening), { concurrency: "unbounded" })
    for (const count of [1, 20]) {
      const reading = yield* Effect.forkChild(Effect.all(repeat(count, sleep), { concurrency: "unbounded" }))
      yield* Effect.sleep("100 millis")
      yield* expectNoDelay
      yield* Effect.forkChild(Fiber.interrupt(reading))
      yield* expectNoDelay
    }
    yield* queryReads({ ...select1, workspace: slow })
  })

  test("if a query loses its connection, Database retries the query on a new connection with the session settings of the service", function* () {
    const database = yield* freshDatabase
    const proxy = yield* proxyToUrl(toDatabaseUrl(database))
    yield* Effect.gen(function* () {
      const [before] = yield* read("select pg_backend_pid() as pid")
      yield* proxy.cut
      const [after] = yield* read("select pg_backend_pid() as pid")
      assert.notStrictEqual(after?.pid, before?.pid)
      yield* Effect.all(repeat(3, read("select pg_sleep(0.1)")), { concurrency: "unbounded" })
      // The server terminates two of three used connections, each in the middle of a statement.
      const reading = yield* Effect.forkChild(read("select pg_sleep(0.3), 'again' as result"))
      const terminate = onServer(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${database}' and state = 'active'`
      )
      for (const _ of [1, 2]) yield* Effect.delay(terminate, "100 millis")
      const [row] = yield* Fiber.join(reading)
      assert.strictEqual(row?.result, "again")
      const [settings] = yield* read(
        `select current_setting('statement_timeout') as timeout, current_setting('plan_cache_mode') as plans,
              current_setting('TimeZone') as zone, current_setting('application_name') as name`
      )
      const values = Object.values(settings ?? {})
      assert.deepStrictEqual(values, ["3s", "force_generic_plan", "UTC", "prompt-retrieval"])
    }).pipe(withDatabase(proxy.url))
  })

  test("a query that waits 1 s for a free connection fails and logs that all connections were busy", function* () {
    const queries = Effect.gen(function* () {
      const slow = Effect.exit(read("select pg_sleep(2.5)"))
      const holding = yield* Effect.forkChild(Effect.all(repeat(32, slow), { concurrency: "unbounded" }))
      yield* Effect.sleep("200 millis")
      assert.strictEqual(yield* Effect.flip(read("select 1")), Unavailable)
      assert.isUndefined(holding.pollUnsafe())
      yield* Fiber.interrupt(holding)
    })
    const line = [
      "A read waited 1 second while all connections for its workspace were busy; failed as unavailable"
    ]
    assert.deepStrictEqual(yield* collectLog(queries), [line])
  })

  test("if several queries exceed the statement timeout at the same time, Database logs only one line", function* () {
    const slow = Effect.flip(read("select pg_sleep(4)"))
    const line = ["A read exceeded the 3 s statement timeout; failed as unavailable"]
    assert.deepStrictEqual(yield* collectLog(Effect.all([slow, slow], { concurrency: 2 })), [line])
    assert.deepStrictEqual(yield* read("select 1 as one"), [{ one: 1 }])
  })

  test("an SQL error that is not an outage makes the query fail with a defect, and later queries succeed", function* () {
    for (const text of ["select 1/0", "selec", "select * from nowhere"]) {
      const exit = yield* Effect.exit(read(text))
      assert.isTrue(Exit.isFailure(exit) && Cause.hasDies(exit.cause), text)
    }
    assert.deepStrictEqual(yield* read("select 1 as one"), [{ one: 1 }])
  })
})
