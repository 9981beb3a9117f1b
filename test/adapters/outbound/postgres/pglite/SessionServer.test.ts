import { spawnSync } from "node:child_process"
import { performance } from "node:perf_hooks"
import * as PgClient from "@effect/sql-pg/PgClient"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as EmbeddedPostgres from "../../../../../src/adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"
import { temporaryDirectory } from "./processes.ts"
import { bind, execute, flush, message, parse, query, RawClient, sync } from "./RawClient.ts"

const scope = Effect.runSync(Scope.make())
let database: EmbeddedPostgres.ServedPostgres
beforeAll(async () => {
  const opening = EmbeddedPostgres.open({ dataDir: temporaryDirectory() })
  database = await Effect.runPromise(Scope.provide(opening, scope))
})
afterAll(() => Effect.runPromise(Scope.close(scope, Exit.void)))

const connect = (settings?: Readonly<Record<string, string>>) =>
  RawClient.connect(database.socketPath, settings)

const pgClient = Effect.suspend(() =>
  PgClient.make({
    path: database.socketPath,
    username: "postgres",
    database: "postgres",
    prepare: false,
    multiplex: true,
    maxConnections: 2
  })
).pipe(Effect.provide(Reactivity.layer))

/** Reads to the end of the connection and returns all errors. */
const readToEnd = async (client: RawClient): Promise<{ readonly errors: ReadonlyArray<string> }> => {
  const errors: Array<string> = []
  for (;;) {
    const response = await client.readResponse()
    errors.push(...response.errors)
    if (response.status === "closed") return { errors }
  }
}

const idle = { tags: [], errors: [], rows: [], status: "I" } as const

describe("SessionServer responses", () => {
  const rounds = 600

  const runRawClient = async (lane: number): Promise<void> => {
    const client = await connect()
    for (let i = 0; i < rounds; i++) {
      const mark = `raw-${lane}-${i}`
      assert.deepStrictEqual((await client.query(`select '${mark}'`)).rows, [[mark]])
      client.send(
        parse(`select '${mark}', 1`),
        bind(),
        execute(),
        sync,
        parse("select no"),
        sync,
        query(`select '${mark}', 2`)
      )
      assert.deepStrictEqual((await client.readResponse()).rows, [[mark, "1"]])
      assert.deepStrictEqual((await client.readResponse()).errors, ["42703"])
      assert.deepStrictEqual((await client.readResponse()).rows, [[mark, "2"]])
      if (i % 10 === 0) {
        assert.strictEqual((await client.query(`begin; insert into marks values ('${mark}')`)).status, "T")
        assert.deepStrictEqual((await client.query("select * from marks")).rows, [[mark]])
        assert.strictEqual(
          (await client.query(i % 20 === 0 ? "rollback" : "selekt")).status,
          i % 20 === 0 ? "I" : "E"
        )
        assert.strictEqual((await client.query("rollback")).status, "I")
      }
    }
    await client.drop()
  }

  const runDriverClient = Effect.fnUntraced(function* (lane: number) {
    const sql = yield* pgClient
    const runRound = Effect.fnUntraced(function* (i: number) {
      const mark = `driver-${lane}-${i}`
      assert.deepStrictEqual(yield* sql`select ${mark} as mark, ${i}::int as i`, [{ mark, i }])
      if (i % 10 === 0) {
        const inside = sql`insert into marks values (${mark})`.pipe(
          Effect.andThen(sql`select * from marks`),
          Effect.flatMap((rows) => Effect.fail(rows)),
          sql.withTransaction,
          Effect.flip
        )
        assert.deepStrictEqual(yield* inside, [{ mark }])
      }
      if (i % 50 === 0) {
        const streamed = yield* Stream.runCollect(
          sql`select ${mark} as mark, i from generate_series(1, 700) i`.stream
        )
        assert.deepStrictEqual(
          [...streamed],
          Array.from({ length: 700 }, (_, n) => ({ mark, i: n + 1 }))
        )
      }
    })
    yield* Effect.forEach(
      Array.from({ length: rounds }, (_, i) => i),
      runRound,
      { concurrency: 10, discard: true }
    )
  })

  it("each of eight concurrent clients gets its own rows, and transactions never mix", async () => {
    const client = await connect()
    await client.query("create table marks (mark text)")
    const lanes = [0, 1, 2, 3]
    await Promise.all([
      ...lanes.map(runRawClient),
      Effect.runPromise(
        Effect.scoped(Effect.forEach(lanes, runDriverClient, { concurrency: "unbounded", discard: true }))
      )
    ])
    assert.deepStrictEqual((await client.query("select count(*) from marks")).rows, [["0"]])
    await client.drop()
  })

  it("a client that reads a portal in parts holds the session until Sync", async () => {
    const [client, other] = await Promise.all([connect(), connect()])
    client.send(parse("select generate_series(1, 3)"), bind(), execute(2), flush)
    assert.deepStrictEqual((await client.readResponse("s")).rows, [["1"], ["2"]])
    const waiting = other.query("select 'other'")
    client.send(execute(2), flush)
    assert.deepStrictEqual((await client.readResponse("C")).rows, [["3"]])
    client.send(sync)
    assert.strictEqual((await client.readResponse()).types, "Z")
    assert.deepStrictEqual((await waiting).rows, [["other"]])
    await Promise.all([client.drop(), other.drop()])
  })

  it("psql prints the rows of two queries", {
    skip: spawnSync("psql", ["--version"]).status !== 0
  }, async () => {
    const { spawn } = await import("node:child_process")
    const host = database.socketPath.replace("/.s.PGSQL.5432", "")
    const psql = spawn("psql", ["-X", "-h", host, "-U", "anyone", "-At", "-c", "select 1", "-c", "select 2"])
    let output = ""
    for await (const chunk of psql.stdout) output += chunk
    assert.strictEqual(output, "1\n2\n")
  })

  it("a client that half-closes after its query still gets the whole response", async () => {
    const client = await connect()
    client.socket.end(query("select 'last'"))
    assert.deepStrictEqual((await client.readResponse()).rows, [["last"]])
    assert.strictEqual((await client.readResponse()).status, "closed")
  })
})

describe("the startup of a connection", () => {
  it('requests for encryption get "N", and the connection continues', async () => {
    const client = await RawClient.dial(database.socketPath)
    for (const code of [80877103, 80877104]) {
      const request = Buffer.alloc(8)
      request.writeInt32BE(8)
      request.writeInt32BE(code, 4)
      client.send(request)
      assert.strictEqual((await client.take(1))?.toString(), "N")
    }
    await client.drop()
  })

  it("a client of protocol 3.2 is told that the server supports 3.0", async () => {
    const client = await RawClient.dial(database.socketPath)
    const packet = Buffer.from([0, 0, 0, 9, 0, 3, 0, 2, 0])
    client.send(packet)
    assert.match((await client.readResponse()).types, /^vRS+KZ$/)
    await client.drop()
  })

  it("a cancel request closes its connection", async () => {
    const client = await RawClient.dial(database.socketPath)
    const request = Buffer.alloc(16)
    request.writeInt32BE(16)
    request.writeInt32BE(80877102, 4)
    client.send(request)
    assert.deepStrictEqual(await client.readResponse(), { ...idle, types: "", status: "closed" })
  })

  it("settings in a startup packet do not affect another connection's transaction", async () => {
    const client = await connect()
    await client.query("begin; set local search_path to nowhere")
    const other = await connect({ application_name: "other" })
    assert.deepStrictEqual((await client.query("show search_path")).rows, [["nowhere"]])
    assert.deepStrictEqual((await client.query("show application_name")).rows, [[""]])
    await Promise.all([client.drop(), other.drop()])
  })

  it("invalid settings in the startup packet close the connection at its first query", async () => {
    const client = await connect({ no_such_setting: "1" })
    assert.deepStrictEqual(await client.query("select 1"), {
      ...idle,
      errors: ["42704"],
      types: "E",
      status: "closed"
    })
  })
})

describe("the session", () => {
  it("settings, prepared statements, temporary tables and advisory locks never reach another connection", async () => {
    const [client, other] = await Promise.all([
      connect(),
      connect({ TimeZone: "Asia/Tokyo", application_name: "it's" })
    ])
    await client.query(
      "set timezone to 'Europe/Paris'; create temp table leftover (a int); select pg_advisory_lock(1)"
    )
    client.send(parse("select 'client'", "mine"), parse("select 'unnamed'"), sync)
    await client.readResponse()
    const state =
      "select current_setting('timezone'), current_setting('application_name'), to_regclass('leftover'), (select count(*) from pg_locks where locktype = 'advisory')"
    assert.deepStrictEqual((await other.query(state)).rows, [["Asia/Tokyo", "it's", null, "0"]])
    for (const name of ["mine", ""]) {
      other.send(bind(name), execute(), sync)
      assert.deepStrictEqual((await other.readResponse()).errors, ["26000"])
      client.send(bind(name), execute(), sync)
      assert.deepStrictEqual((await client.readResponse()).errors, ["26000"])
    }
    assert.deepStrictEqual((await client.query(state)).rows, [["UTC", "", null, "0"]])
    await Promise.all([client.drop(), other.drop()])
  })

  it("a query that waits 3 s for another connection's transaction fails with 57014", async () => {
    const [client, reader, late] = await Promise.all([connect(), connect(), connect()])
    await client.query("begin")
    const start = performance.now()
    reader.send(query("select 1"), parse("select 2"), bind(), execute(), sync)
    const busy = { ...idle, errors: ["57014"], types: "EZ" }
    const rejectedAfter = (async () => {
      assert.deepStrictEqual([await reader.readResponse(), await reader.readResponse()], [busy, busy])
      return performance.now() - start
    })()
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setTimeout(resolve, 900))
      assert.strictEqual((await client.query("select 1")).status, "T")
    }
    const waiting = late.query("select 'late'")
    const after = await rejectedAfter
    assert.isTrue(after >= 2_900 && after < 3_600, `${after} ms`)
    assert.strictEqual((await client.query("commit")).status, "I")
    assert.deepStrictEqual((await waiting).rows, [["late"]])
    assert.deepStrictEqual((await reader.query("select 'again'")).rows, [["again"]])
    await Promise.all([client.drop(), reader.drop(), late.drop()])
  })

  it("waiting connections get the session in the order of their queries", async () => {
    const client = await connect()
    const others = await Promise.all([0, 1, 2, 3].map(() => connect()))
    await client.query("create sequence turns minvalue 0")
    await client.query("begin")
    const turns: Array<Promise<string | null | undefined>> = []
    for (const other of others) {
      turns.push(other.query("select nextval('turns')").then(({ rows }) => rows[0]?.[0]))
      // The response to a later query proves that the server has read the earlier one.
      for (let i = 0; i < 3; i++) await client.query("select 1")
    }
    await client.query("commit")
    assert.deepStrictEqual(await Promise.all(turns), ["0", "1", "2", "3"])
    await Promise.all([client, ...others].map((each) => each.drop()))
  })

  it.each([
    ["in a transaction", [query("begin; insert into idled values (1)")]],
    ["in the middle of a batch", [parse("insert into idled values (1)"), bind(), execute(), flush]],
    [
      "after an error in a batch",
      [parse("insert into idled values (1)"), bind(), execute(), parse("selekt"), flush]
    ]
  ])("a connection that is idle for 2 s %s is closed with 25P03 and rolled back", async (_, messages) => {
    const [client, other] = await Promise.all([connect(), connect()])
    await other.query("create table if not exists idled (a int)")
    const start = performance.now()
    client.send(...messages)
    await client.readResponse("CE")
    assert.deepStrictEqual((await other.query("select * from idled")).rows, [])
    const duration = performance.now() - start
    assert.isTrue(duration >= 1_900 && duration < 2_900, `${duration} ms`)
    assert.include((await readToEnd(client)).errors, "25P03")
    await other.drop()
  })

  it("a connection in a transaction keeps the session while it reads slowly, and loses it when it stops reading", async () => {
    const [client, other] = await Promise.all([connect(), connect()])
    await client.query("begin")
    client.socket.pause()
    client.send(query("select repeat('x', 1000000) from generate_series(1, 60)"))
    const start = performance.now()
    let readBytes = 0
    while (performance.now() - start < 2_500) {
      await new Promise((resolve) => setTimeout(resolve, 25))
      const chunk: Buffer | null = client.socket.read()
      readBytes += chunk?.length ?? 0
    }
    const stoppedAt = performance.now()
    assert.isTrue(readBytes > 1_000_000 && readBytes < 60_000_000, `${readBytes} bytes`)
    assert.deepStrictEqual((await other.query("select 'free'")).rows, [["free"]])
    assert.isTrue(performance.now() - stoppedAt > 1_500)
    await Promise.all([client.drop(), other.drop()])
  })

  it("a connection that disconnects in a transaction is rolled back", async () => {
    const [client, other] = await Promise.all([connect(), connect()])
    await client.query("create table left_open (a int)")
    await client.query("begin; insert into left_open values (1)")
    const counted = other.query("select count(*) from left_open")
    await client.drop()
    assert.deepStrictEqual((await counted).rows, [["0"]])
    await other.drop()
  })
})

describe("COPY FROM STDIN", () => {
  const row = message("d", Buffer.from("1\n"))
  const done = message("c")

  it.each([
    ["a statement", "COPY copied FROM STDIN"],
    [
      "with comments and mixed case",
      "/* from */ cOpY\n copied -- stdin\n (a) fRoM /**/ stdin with (format csv)"
    ],
    ["among statements", "select 1; copy copied from stdin; insert into copied values (2)"],
    ["of a view, through a rule", "copy copied_view from stdin"]
  ])("fails and stores nothing: %s", async (_, sql) => {
    const client = await connect()
    await client.query(
      "create table if not exists copied (a int); create or replace view copied_view as select * from copied"
    )
    client.send(query(sql), row, done)
    const simple = await client.readResponse()
    assert.deepStrictEqual([simple.errors.length, simple.status, simple.types.includes("G")], [1, "I", false])
    await client.query("begin")
    assert.strictEqual((await client.query(sql)).status, "E")
    assert.strictEqual((await client.query("rollback")).status, "I")
    assert.deepStrictEqual((await client.query("select * from copied")).rows, [])
    await client.drop()
  })

  it("fails with 0A000, even when prepared", async () => {
    const client = await connect()
    await client.query("create table if not exists copied (a int)")
    assert.deepStrictEqual((await client.query("copy copied from stdin")).errors, ["0A000"])
    client.send(parse("copy copied from stdin", "copy"), sync)
    await client.readResponse()
    client.send(bind("copy"), execute(), sync, row, done, query("select 'on'"))
    assert.deepStrictEqual((await client.readResponse()).errors, ["0A000"])
    assert.deepStrictEqual((await client.readResponse()).rows, [["on"]])
    await client.drop()
  })

  it('COPY TO STDOUT and text that contains "copy from stdin" work', async () => {
    const client = await connect()
    assert.deepStrictEqual((await client.query("copy (select 1) to stdout")).types, "HdcCZ")
    assert.deepStrictEqual((await client.query("select 'copy t from stdin'")).rows, [["copy t from stdin"]])
    await client.drop()
  })
})

describe("a database that crashes", () => {
  /** Overflows PGlite's stack; PostgreSQL itself would limit the recursion. */
  const crashingQuery = `select ${"1+".repeat(50_000)}1`

  it("is opened again: the client that crashed it is disconnected with 57P02, other clients continue, and nothing committed is lost", async () => {
    const [client, other] = await Promise.all([connect(), connect()])
    await client.query("create table survived (a int); insert into survived values (1)")
    await client.query("begin; insert into survived values (2)")
    const crashed = client.query(crashingQuery)
    const waiting = other.query("select * from survived")
    assert.deepStrictEqual(await crashed, { ...idle, errors: ["57P02"], types: "E", status: "closed" })
    assert.deepStrictEqual((await waiting).rows, [["1"]])
    await other.drop()
  })

  it("delivers NOTIFY before and after the crash, and reports the gap in between", async () => {
    const received: Array<string> = []
    let wake = (): void => {}
    const expectReceived = async (...expected: ReadonlyArray<string>): Promise<void> => {
      while (received.length < expected.length)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      assert.deepStrictEqual(received, expected)
    }
    const listener = {
      onNotification: (payload: string) => {
        received.push(payload)
        wake()
      },
      onGap: () => {
        received.push("gap")
        wake()
      }
    }
    const listening = Effect.runSync(Scope.make())
    await Effect.runPromise(Scope.provide(database.listen('Odd "name"', listener), listening))
    const notify = (payload: string): string => `notify "Odd ""name""", '${payload}'`
    const [client, other] = await Promise.all([connect(), connect()])
    assert.strictEqual((await client.query(notify("one"))).types, "CZ")
    await expectReceived("one")
    await client.query("unlisten *")
    await other.query(notify("two"))
    await expectReceived("one", "gap", "two")
    await client.query(crashingQuery)
    await other.query(notify("three"))
    await expectReceived("one", "gap", "two", "gap", "three")
    await Effect.runPromise(Scope.close(listening, Exit.void))
    await other.query(notify("four"))
    assert.strictEqual(received.length, 5)
    await other.drop()
  })
})

describe("a session whose statements end LISTEN", () => {
  const change = "notify verified, 'change'"
  const createFunction =
    "create or replace function unlisten_all() returns int language plpgsql as $$ begin unlisten *; return 1; end $$"
  const makeBatch = (...statements: ReadonlyArray<string>) => [
    ...statements.flatMap((text) => [parse(text), bind(), execute()]),
    sync
  ]
  /** Batches, each sent after the response to the previous one; the last one makes the change. */
  const sessions: ReadonlyArray<readonly [name: string, batches: ReadonlyArray<ReadonlyArray<Buffer>>]> = [
    ["UNLISTEN", [[query("unlisten *")], [query(change)]]],
    ["UNLISTEN of the channel", [[query("unlisten verified")], [query(change)]]],
    ["UNLISTEN in the same query", [[query(`unlisten *; ${change}`)]]],
    ["DISCARD ALL", [[query("discard all")], [query(change)]]],
    [
      "RESET ALL and SET SESSION AUTHORIZATION",
      [[query("reset all")], [query("set session authorization default")], [query(change)]]
    ],
    ["DEALLOCATE ALL", [[query("deallocate all")], [query("unlisten *")], [query(change)]]],
    ["a DO block", [[query("do $$ begin unlisten *; end $$")], [query(change)]]],
    ["a function", [[query(createFunction)], [query("select unlisten_all()")], [query(change)]]],
    ["a function in the same query", [[query(createFunction)], [query(`select unlisten_all(); ${change}`)]]],
    ["an extended batch", [makeBatch("unlisten *"), makeBatch(change)]],
    ["an extended batch with the change", [makeBatch("unlisten *", change)]],
    [
      "a prepared statement",
      [[parse("unlisten *", "unlisten"), sync], [bind("unlisten"), execute(), sync], [query(change)]]
    ],
    ["a transaction", [[query("begin")], [query("unlisten *")], [query("commit")], [query(change)]]],
    [
      "a transaction with the change",
      [[query("begin")], [query("unlisten *")], [query(change)], [query("commit")]]
    ],
    [
      "a commit in a batch that begins another transaction",
      [[query("begin; unlisten *; commit; begin")], [query(`${change}; commit; begin`)]]
    ],
    [
      "COMMIT AND CHAIN",
      [[query("begin; unlisten *")], [query("commit and chain")], [query(`${change}; commit and chain`)]]
    ],
    [
      "a commit before an error",
      [[query("begin; unlisten *; commit")], [query(`begin; ${change}; commit; select 1/0`)]]
    ]
  ]

  it.each(sessions)(
    "the listener is notified of the change, or of a gap, before the response: %s",
    async (_, batches) => {
      const received: Array<string> = []
      const listener = {
        onNotification: (payload: string) => received.push(payload),
        onGap: () => received.push("gap")
      }
      const listening = Effect.runSync(Scope.make())
      await Effect.runPromise(Scope.provide(database.listen("verified", listener), listening))
      const [client, other] = await Promise.all([connect(), connect()])
      for (const [index, batch] of batches.entries()) {
        if (index === batches.length - 1) received.length = 0
        client.send(...batch)
        await client.readResponse()
      }
      assert.isAbove(received.length, 0)
      await client.drop()
      received.length = 0
      await other.query(change)
      assert.deepStrictEqual(received, ["change"])
      await other.drop()
      await Effect.runPromise(Scope.close(listening, Exit.void))
    }
  )

  it("statements that do not affect LISTEN report no gap", async () => {
    let gaps = 0
    const listening = Effect.runSync(Scope.make())
    const listener = { onNotification: () => {}, onGap: () => gaps++ }
    await Effect.runPromise(Scope.provide(database.listen("verified", listener), listening))
    const [client, other] = await Promise.all([connect(), connect()])
    for (const text of ["select 1", "begin", "select 1", "commit", "set work_mem = '8MB'", "select 1/0"]) {
      await client.query(text)
      await other.query("select 1")
    }
    assert.strictEqual(gaps, 0)
    await Promise.all([client.drop(), other.drop()])
    await Effect.runPromise(Scope.close(listening, Exit.void))
  })
})

describe("a client that breaks the protocol", () => {
  it.each([
    ["with a message over 64 MiB", Buffer.from([0x51, 4, 0, 0, 1])],
    ["with a message that only a server sends", message("Z")],
    ["with a length below 4", Buffer.from([0x51, 0, 0, 0, 1])]
  ])("is closed with 08P01 and rolled back: %s", async (_, bytes) => {
    const client = await connect()
    await client.query("begin")
    client.send(bytes)
    assert.deepStrictEqual(await client.readResponse(), {
      ...idle,
      errors: ["08P01"],
      types: "E",
      status: "closed"
    })
    const other = await connect()
    assert.deepStrictEqual((await other.query("select 'free'")).rows, [["free"]])
    await other.drop()
  })

  it("messages of 20 MiB and batches of 500 statements without a Sync work", async () => {
    const client = await connect()
    const large = "x".repeat(20 * 1024 * 1024)
    assert.deepStrictEqual((await client.query(`select length('${large}')`)).rows, [[`${large.length}`]])
    const one = Buffer.concat([parse(`select '${"y".repeat(10_000)}'`), bind(), execute()])
    client.send(...Array.from({ length: 500 }, () => one), sync)
    assert.strictEqual((await client.readResponse()).rows.length, 500)
    await client.drop()
  })
})
