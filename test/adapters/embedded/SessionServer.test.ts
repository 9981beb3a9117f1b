import { spawnSync } from "node:child_process"
import { performance } from "node:perf_hooks"
import * as PgClient from "@effect/sql-pg/PgClient"
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Reactivity from "effect/reactivity/Reactivity"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as EmbeddedPostgres from "../../../src/adapters/embedded/EmbeddedPostgres.ts"
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

/** All errors up to the end of the connection. */
const toItsEnd = async (client: RawClient): Promise<{ readonly errors: ReadonlyArray<string> }> => {
  const errors: Array<string> = []
  for (;;) {
    const answer = await client.answer()
    errors.push(...answer.errors)
    if (answer.status === "closed") return { errors }
  }
}

const idle = { tags: [], errors: [], rows: [], status: "I" } as const

describe("answers", { timeout: 40_000 }, () => {
  const rounds = 600

  const rawLane = async (lane: number): Promise<void> => {
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
      assert.deepStrictEqual((await client.answer()).rows, [[mark, "1"]])
      assert.deepStrictEqual((await client.answer()).errors, ["42703"])
      assert.deepStrictEqual((await client.answer()).rows, [[mark, "2"]])
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

  const driverLane = Effect.fnUntraced(function* (lane: number) {
    const sql = yield* pgClient
    const ask = Effect.fnUntraced(function* (i: number) {
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
      ask,
      { concurrency: 10, discard: true }
    )
  })

  it("are never another connection's", async () => {
    const client = await connect()
    await client.query("create table marks (mark text)")
    const lanes = [0, 1, 2, 3]
    await Promise.all([
      ...lanes.map(rawLane),
      Effect.runPromise(
        Effect.scoped(Effect.forEach(lanes, driverLane, { concurrency: "unbounded", discard: true }))
      )
    ])
    assert.deepStrictEqual((await client.query("select count(*) from marks")).rows, [["0"]])
    await client.drop()
  })

  it("come to a client that asks for a portal's rows bit by bit, the session its own until Sync", async () => {
    const [client, other] = await Promise.all([connect(), connect()])
    client.send(parse("select generate_series(1, 3)"), bind(), execute(2), flush)
    assert.deepStrictEqual((await client.answer("s")).rows, [["1"], ["2"]])
    const waited = other.query("select 'other'")
    client.send(execute(2), flush)
    assert.deepStrictEqual((await client.answer("C")).rows, [["3"]])
    client.send(sync)
    assert.strictEqual((await client.answer()).types, "Z")
    assert.deepStrictEqual((await waited).rows, [["other"]])
    await Promise.all([client.drop(), other.drop()])
  })

  it("come to psql", { skip: spawnSync("psql", ["--version"]).status !== 0 }, async () => {
    const { spawn } = await import("node:child_process")
    const host = database.socketPath.replace("/.s.PGSQL.5432", "")
    const psql = spawn("psql", ["-X", "-h", host, "-U", "whoever", "-At", "-c", "select 1", "-c", "select 2"])
    let said = ""
    for await (const chunk of psql.stdout) said += chunk
    assert.strictEqual(said, "1\n2\n")
  })

  it("are complete when the client has closed its side", async () => {
    const client = await connect()
    client.socket.end(query("select 'last'"))
    assert.deepStrictEqual((await client.answer()).rows, [["last"]])
    assert.strictEqual((await client.answer()).status, "closed")
  })
})

describe("startup", () => {
  it("refuses encryption, and goes on without", async () => {
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

  it("says which version of the protocol it speaks to a newer client", async () => {
    const client = await RawClient.dial(database.socketPath)
    const packet = Buffer.from([0, 0, 0, 9, 0, 3, 0, 2, 0])
    client.send(packet)
    assert.match((await client.answer()).types, /^vRS+KZ$/)
    await client.drop()
  })

  it("closes a connection that asks to cancel", async () => {
    const client = await RawClient.dial(database.socketPath)
    const request = Buffer.alloc(16)
    request.writeInt32BE(16)
    request.writeInt32BE(80877102, 4)
    client.send(request)
    assert.deepStrictEqual(await client.answer(), { ...idle, types: "", status: "closed" })
  })

  it("does not disturb a transaction of another connection", async () => {
    const client = await connect()
    await client.query("begin; set local search_path to nowhere")
    const other = await connect({ application_name: "other" })
    assert.deepStrictEqual((await client.query("show search_path")).rows, [["nowhere"]])
    assert.deepStrictEqual((await client.query("show application_name")).rows, [[""]])
    await Promise.all([client.drop(), other.drop()])
  })

  it("ends a connection whose settings the database refuses, at its first query", async () => {
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
  it("is as new for each connection, but for the settings of its startup packet", async () => {
    const [client, other] = await Promise.all([
      connect(),
      connect({ TimeZone: "Asia/Tokyo", application_name: "it's" })
    ])
    await client.query(
      "set timezone to 'Europe/Paris'; create temp table kept (a int); select pg_advisory_lock(1)"
    )
    client.send(parse("select 'client'", "mine"), parse("select 'unnamed'"), sync)
    await client.answer()
    const state =
      "select current_setting('timezone'), current_setting('application_name'), to_regclass('kept'), (select count(*) from pg_locks where locktype = 'advisory')"
    assert.deepStrictEqual((await other.query(state)).rows, [["Asia/Tokyo", "it's", null, "0"]])
    for (const name of ["mine", ""]) {
      other.send(bind(name), execute(), sync)
      assert.deepStrictEqual((await other.answer()).errors, ["26000"])
      client.send(bind(name), execute(), sync)
      assert.deepStrictEqual((await client.answer()).errors, ["26000"])
    }
    assert.deepStrictEqual((await client.query(state)).rows, [["UTC", "", null, "0"]])
    await Promise.all([client.drop(), other.drop()])
  })

  it("is refused in time to those who wait for one that is in a transaction", async () => {
    const [client, reader, late] = await Promise.all([connect(), connect(), connect()])
    await client.query("begin")
    const start = performance.now()
    reader.send(query("select 1"), parse("select 2"), bind(), execute(), sync)
    const busy = { ...idle, errors: ["57014"], types: "EZ" }
    const refused = (async () => {
      assert.deepStrictEqual([await reader.answer(), await reader.answer()], [busy, busy])
      return performance.now() - start
    })()
    for (let i = 0; i < 3; i++) {
      await new Promise((resolve) => setTimeout(resolve, 900))
      assert.strictEqual((await client.query("select 1")).status, "T")
    }
    const waited = late.query("select 'late'")
    const after = await refused
    assert.isTrue(after >= 2_900 && after < 3_600, `${after} ms`)
    assert.strictEqual((await client.query("commit")).status, "I")
    assert.deepStrictEqual((await waited).rows, [["late"]])
    assert.deepStrictEqual((await reader.query("select 'again'")).rows, [["again"]])
    await Promise.all([client.drop(), reader.drop(), late.drop()])
  })

  it("goes to those who wait for it in the order in which they came", async () => {
    const client = await connect()
    const others = await Promise.all([0, 1, 2, 3].map(() => connect()))
    await client.query("create sequence turns minvalue 0")
    await client.query("begin")
    const turns: Array<Promise<string | null | undefined>> = []
    for (const other of others) {
      turns.push(other.query("select nextval('turns')").then(({ rows }) => rows[0]?.[0]))
      // The server has read what was sent before when it has answered this.
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
  ])("is taken from a connection that does nothing for 2 s %s", async (_, messages) => {
    const [client, other] = await Promise.all([connect(), connect()])
    await other.query("create table if not exists idled (a int)")
    const start = performance.now()
    client.send(...messages)
    await client.answer("CE")
    assert.deepStrictEqual((await other.query("select * from idled")).rows, [])
    const took = performance.now() - start
    assert.isTrue(took >= 1_900 && took < 2_900, `${took} ms`)
    assert.include((await toItsEnd(client)).errors, "25P03")
    await other.drop()
  })

  it("stays with a connection in a transaction that takes its answer slowly, until it takes no more", async () => {
    const [client, other] = await Promise.all([connect(), connect()])
    await client.query("begin")
    client.socket.pause()
    client.send(query("select repeat('x', 1000000) from generate_series(1, 60)"))
    const start = performance.now()
    let taken = 0
    while (performance.now() - start < 2_500) {
      await new Promise((resolve) => setTimeout(resolve, 25))
      const chunk: Buffer | null = client.socket.read()
      taken += chunk?.length ?? 0
    }
    const waited = performance.now()
    assert.isTrue(taken > 1_000_000 && taken < 60_000_000, `${taken} bytes`)
    assert.deepStrictEqual((await other.query("select 'free'")).rows, [["free"]])
    assert.isTrue(performance.now() - waited > 1_500)
    await Promise.all([client.drop(), other.drop()])
  })

  it("rolls back for a connection that goes away", async () => {
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
    ["in odd dress", "/* from */ cOpY\n copied -- stdin\n (a) fRoM /**/ stdin with (format csv)"],
    ["among statements", "select 1; copy copied from stdin; insert into copied values (2)"],
    ["of a view, through a rule", "copy copied_view from stdin"]
  ])("is refused: %s", async (_, sql) => {
    const client = await connect()
    await client.query(
      "create table if not exists copied (a int); create or replace view copied_view as select * from copied"
    )
    client.send(query(sql), row, done)
    const simple = await client.answer()
    assert.deepStrictEqual([simple.errors.length, simple.status, simple.types.includes("G")], [1, "I", false])
    await client.query("begin")
    assert.strictEqual((await client.query(sql)).status, "E")
    assert.strictEqual((await client.query("rollback")).status, "I")
    assert.deepStrictEqual((await client.query("select * from copied")).rows, [])
    await client.drop()
  })

  it("is refused as what it is, also when prepared", async () => {
    const client = await connect()
    await client.query("create table if not exists copied (a int)")
    assert.deepStrictEqual((await client.query("copy copied from stdin")).errors, ["0A000"])
    client.send(parse("copy copied from stdin", "copy"), sync)
    await client.answer()
    client.send(bind("copy"), execute(), sync, row, done, query("select 'on'"))
    assert.deepStrictEqual((await client.answer()).errors, ["0A000"])
    assert.deepStrictEqual((await client.answer()).rows, [["on"]])
    await client.drop()
  })

  it("leaves COPY TO STDOUT, and text that only looks like it, alone", async () => {
    const client = await connect()
    assert.deepStrictEqual((await client.query("copy (select 1) to stdout")).types, "HdcCZ")
    assert.deepStrictEqual((await client.query("select 'copy t from stdin'")).rows, [["copy t from stdin"]])
    await client.drop()
  })
})

describe("a database that has ended", () => {
  /** Recursion that PostgreSQL would stop overruns PGlite's stack. */
  const deadly = `select ${"1+".repeat(50_000)}1`

  it("is opened again: the connection in it is closed, the others go on, and nothing committed is lost", async () => {
    const [client, other] = await Promise.all([connect(), connect()])
    await client.query("create table survived (a int); insert into survived values (1)")
    await client.query("begin; insert into survived values (2)")
    const ended = client.query(deadly)
    const waited = other.query("select * from survived")
    assert.deepStrictEqual(await ended, { ...idle, errors: ["57P02"], types: "E", status: "closed" })
    assert.deepStrictEqual((await waited).rows, [["1"]])
    await other.drop()
  })

  it("hears NOTIFY before and after, and knows of the gap", async () => {
    const heard: Array<string> = []
    let wake = (): void => {}
    const hears = async (...expected: ReadonlyArray<string>): Promise<void> => {
      while (heard.length < expected.length)
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      assert.deepStrictEqual(heard, expected)
    }
    const listener = {
      notice: (payload: string) => {
        heard.push(payload)
        wake()
      },
      gap: () => {
        heard.push("gap")
        wake()
      }
    }
    const listening = Effect.runSync(Scope.make())
    await Effect.runPromise(Scope.provide(database.listen('Odd "name"', listener), listening))
    const notify = (payload: string): string => `notify "Odd ""name""", '${payload}'`
    const [client, other] = await Promise.all([connect(), connect()])
    assert.strictEqual((await client.query(notify("one"))).types, "CZ")
    await hears("one")
    await client.query("unlisten *")
    await other.query(notify("two"))
    await hears("one", "gap", "two")
    await client.query(deadly)
    await other.query(notify("three"))
    await hears("one", "gap", "two", "gap", "three")
    await Effect.runPromise(Scope.close(listening, Exit.void))
    await other.query(notify("four"))
    assert.strictEqual(heard.length, 5)
    await other.drop()
  })
})

describe("a session whose statements end LISTEN", () => {
  const change = "notify verified, 'change'"
  const deafen =
    "create or replace function deafen() returns int language plpgsql as $$ begin unlisten *; return 1; end $$"
  const extended = (...statements: ReadonlyArray<string>) => [
    ...statements.flatMap((text) => [parse(text), bind(), execute()]),
    sync
  ]
  /** Batches, each answered before the next is sent; the last one makes the change. */
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
    ["a function", [[query(deafen)], [query("select deafen()")], [query(change)]]],
    ["a function in the same query", [[query(deafen)], [query(`select deafen(); ${change}`)]]],
    ["an extended batch", [extended("unlisten *"), extended(change)]],
    ["an extended batch with the change", [extended("unlisten *", change)]],
    [
      "a prepared statement",
      [[parse("unlisten *", "deaf"), sync], [bind("deaf"), execute(), sync], [query(change)]]
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
    "the listener hears of the change, or of a gap, before the answer: %s",
    async (_, batches) => {
      const heard: Array<string> = []
      const listener = { notice: (payload: string) => heard.push(payload), gap: () => heard.push("gap") }
      const listening = Effect.runSync(Scope.make())
      await Effect.runPromise(Scope.provide(database.listen("verified", listener), listening))
      const [client, other] = await Promise.all([connect(), connect()])
      for (const [index, batch] of batches.entries()) {
        if (index === batches.length - 1) heard.length = 0
        client.send(...batch)
        await client.answer()
      }
      assert.isAbove(heard.length, 0)
      await client.drop()
      heard.length = 0
      await other.query(change)
      assert.deepStrictEqual(heard, ["change"])
      await other.drop()
      await Effect.runPromise(Scope.close(listening, Exit.void))
    }
  )

  it("statements that leave LISTEN alone report no gap", async () => {
    let gaps = 0
    const listening = Effect.runSync(Scope.make())
    const listener = { notice: () => {}, gap: () => gaps++ }
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
    ["with a length that can't be", Buffer.from([0x51, 0, 0, 0, 1])]
  ])("is closed: %s", async (_, bytes) => {
    const client = await connect()
    await client.query("begin")
    client.send(bytes)
    assert.deepStrictEqual(await client.answer(), {
      ...idle,
      errors: ["08P01"],
      types: "E",
      status: "closed"
    })
    const other = await connect()
    assert.deepStrictEqual((await other.query("select 'free'")).rows, [["free"]])
    await other.drop()
  })

  it("may send large messages, and batches without an end", async () => {
    const client = await connect()
    const large = "x".repeat(20 * 1024 * 1024)
    assert.deepStrictEqual((await client.query(`select length('${large}')`)).rows, [[`${large.length}`]])
    const one = Buffer.concat([parse(`select '${"y".repeat(10_000)}'`), bind(), execute()])
    client.send(...Array.from({ length: 500 }, () => one), sync)
    assert.strictEqual((await client.answer()).rows.length, 500)
    await client.drop()
  })
})
