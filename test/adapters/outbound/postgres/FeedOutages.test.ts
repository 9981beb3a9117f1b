import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { layer } from "../../../../src/adapters/outbound/postgres/PostgresChangeFeed.ts"
import { channel } from "../../../../src/adapters/outbound/postgres/NotifyChannel.ts"
import { Database } from "../../../../src/adapters/outbound/postgres/Database.ts"
import { ChangeFeed } from "../../../../src/application/ports/ChangeFeed.ts"
import type { WorkspaceId } from "../../../../src/domain/Prompt.ts"
import { newId } from "../../../support/archives.ts"
import {
  freshDatabase,
  noPostgres,
  onServer,
  proxyTo,
  toDatabaseUrl as urlOf
} from "../../../support/postgres.ts"

/** DESIGN.md section 7: a silent cut is told within 3 s; a busy machine may notice later, never the feed's own clock. */
const bound = 3_000
/** How long a feed may take to be heard again, in milliseconds: its 3 s, a connection attempt or two, a heartbeat. */
const recovery = 12_000

const until = Effect.fnUntraced(function* (what: string, within: number, holds: () => boolean) {
  const started = performance.now()
  while (!holds()) {
    if (performance.now() - started > within) assert.fail(`${what}: not within ${within} ms`)
    yield* Effect.sleep("2 millis")
  }
  return performance.now() - started
})

/** A feed of a database behind `url`, what it logs, and a way to tell it of a change past that address. */
const feedAt = Effect.fnUntraced(function* (url: string, database: string) {
  const lines: Array<unknown> = []
  const logger = Logger.layer([Logger.make(({ message }) => lines.push(message))])
  const context = yield* Layer.build(
    layer.pipe(Layer.provide(Database.layer({ url: Redacted.make(url) })), Layer.provide(logger))
  )
  const feed = Context.get(context, ChangeFeed)
  const { sql } = yield* Effect.map(
    Layer.build(PgClient.layer({ url: Redacted.make(urlOf(database)) })),
    (direct) => ({ sql: Context.get(direct, PgClient.PgClient) })
  ).pipe(Effect.orDie)
  const tell = (workspace: WorkspaceId) => Effect.orDie(sql.notify(channel, workspace))
  const isUp = () => feed.revision() !== undefined
  return { feed, lines, tell, isUp, untilUp: until("up", recovery, isUp), sql }
})

const warning = ["Change feed down; caching disabled"]
const relief = ["Change feed restored; caching enabled"]

/** Ends the backends that listen in a database. */
const terminateListeners = (database: string) =>
  onServer(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = '${database}' and query ilike 'listen%'`)

describe.skipIf(noPostgres !== undefined)("a feed of changes", { timeout: 60_000 }, () => {
  it.live("hears of one workspace's change, and of no other's", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const { feed, lines, tell, untilUp } = yield* feedAt(urlOf(database), database)
      yield* untilUp
      const [changed, other] = [newId<WorkspaceId>(), newId<WorkspaceId>()]
      const [before, same, now] = [feed.revisionOf(changed), feed.revisionOf(other), feed.revision()!]
      yield* tell(changed)
      yield* until("heard", 1_000, () => feed.revisionOf(changed) !== before)
      assert.isAbove(feed.revisionOf(changed)!, now)
      assert.strictEqual(feed.revisionOf(other), same)
      assert.deepStrictEqual(lines, [])
    })
  )

  it.live("is down as soon as its connection is ended, and after that all has changed", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const { feed, isUp, lines, untilUp } = yield* feedAt(urlOf(database), database)
      yield* untilUp
      const workspace = newId<WorkspaceId>()
      const before = feed.revision()!
      yield* terminateListeners(database)
      assert.isBelow(yield* until("down", 1_000, () => !isUp()), 500)
      yield* untilUp
      assert.isAbove(feed.revisionOf(workspace)!, before)
      assert.deepStrictEqual(lines, [warning, relief])
    })
  )

  it.live("is down within 3 s of a cut that nothing tells of, and up once that ends", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      const { feed, isUp, lines, untilUp } = yield* feedAt(proxy.url, database)
      yield* untilUp
      const before = feed.revision()!
      yield* proxy.freeze
      assert.isBelow(yield* until("down", 2 * bound, () => !isUp()), bound + 50)
      yield* Effect.sleep("2 seconds")
      assert.isFalse(isUp())
      yield* proxy.thaw
      yield* untilUp
      assert.isAbove(feed.revisionOf(newId<WorkspaceId>())!, before)
      assert.deepStrictEqual(lines, [warning, relief])
    })
  )

  it.live("is up again after its connections went silent for good", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      const { feed, isUp, tell, untilUp } = yield* feedAt(proxy.url, database)
      yield* untilUp
      yield* proxy.silence
      yield* until("down", 2 * bound, () => !isUp())
      yield* untilUp
      const workspace = newId<WorkspaceId>()
      const before = feed.revisionOf(workspace)
      yield* tell(workspace)
      yield* until("heard", 1_000, () => feed.revisionOf(workspace) !== before)
    })
  )

  it.live("is down for good behind a pooler that keeps notices back, which one line says", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database, { pooler: true })
      const { isUp, lines } = yield* feedAt(proxy.url, database)
      const started = performance.now()
      // Long enough for it to give up and begin anew twice.
      while (performance.now() - started < 8_000) {
        assert.isFalse(isUp())
        yield* Effect.sleep("20 millis")
      }
      assert.deepStrictEqual(lines, [warning])
    })
  )

  it.live("ends at once, whatever its connections are", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      const ended = yield* Effect.scoped(
        Effect.gen(function* () {
          const { lines, untilUp } = yield* feedAt(proxy.url, database)
          yield* untilUp
          yield* proxy.silence
          return { lines, since: performance.now() }
        })
      )
      assert.isBelow(performance.now() - ended.since, 1_000)
      assert.deepStrictEqual(ended.lines, [])
    })
  )
})
