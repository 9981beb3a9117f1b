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
import type { WorkspaceId } from "../../../../src/domain/WorkspaceId.ts"
import { newId } from "../../../support/archives.ts"
import {
  freshDatabase,
  noPostgres,
  onServer,
  proxyTo,
  toDatabaseUrl as urlOf
} from "../../../support/postgres.ts"

/** A silent connection is detected within 3 s by the clock of the feed, however late a busy machine runs the test. */
const heartbeatTtl = 3_000
/** The most that a feed takes to recover, in milliseconds: 3 s, two connection attempts and a heartbeat. */
const recovery = 12_000

const until = Effect.fnUntraced(function* (what: string, within: number, holds: () => boolean) {
  const started = performance.now()
  while (!holds()) {
    if (performance.now() - started > within) assert.fail(`${what}: not within ${within} ms`)
    yield* Effect.sleep("2 millis")
  }
  return performance.now() - started
})

/** Starts a feed of a database behind `url`, collects its log, and sends notifications on a direct connection. */
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
  const notify = (workspace: WorkspaceId) => Effect.orDie(sql.notify(channel, workspace))
  const isUp = () => feed.revision() !== undefined
  return { feed, lines, notify, isUp, untilUp: until("up", recovery, isUp), sql }
})

const downLine = ["Change feed down; caching disabled"]
const restoredLine = ["Change feed restored; caching enabled"]

/** Ends the backends that listen in a database. */
const terminateListeners = (database: string) =>
  onServer(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = '${database}' and query ilike 'listen%'`)

describe.skipIf(noPostgres !== undefined)("the PostgreSQL change feed", { timeout: 60_000 }, () => {
  it.live("raises the revision of the workspace that changed and of no other", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const { feed, lines, notify, untilUp } = yield* feedAt(urlOf(database), database)
      yield* untilUp
      const [changed, other] = [newId<WorkspaceId>(), newId<WorkspaceId>()]
      const [before, same, now] = [feed.revisionOf(changed), feed.revisionOf(other), feed.revision()!]
      yield* notify(changed)
      yield* until("notified", 1_000, () => feed.revisionOf(changed) !== before)
      assert.isAbove(feed.revisionOf(changed)!, now)
      assert.strictEqual(feed.revisionOf(other), same)
      assert.deepStrictEqual(lines, [])
    })
  )

  it.live(
    "goes down at once when its connection is terminated, and raises every revision once it is up again",
    () =>
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
        assert.deepStrictEqual(lines, [downLine, restoredLine])
      })
  )

  it.live("goes down within 3 s when its connections freeze silently, and comes up when they thaw", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      const { feed, isUp, lines, untilUp } = yield* feedAt(proxy.url, database)
      yield* untilUp
      const before = feed.revision()!
      yield* proxy.freeze
      assert.isBelow(yield* until("down", 2 * heartbeatTtl, () => !isUp()), heartbeatTtl + 50)
      yield* Effect.sleep("2 seconds")
      assert.isFalse(isUp())
      yield* proxy.thaw
      yield* untilUp
      assert.isAbove(feed.revisionOf(newId<WorkspaceId>())!, before)
      assert.deepStrictEqual(lines, [downLine, restoredLine])
    })
  )

  it.live("reconnects after its connections went silent for good", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      const { feed, isUp, notify, untilUp } = yield* feedAt(proxy.url, database)
      yield* untilUp
      yield* proxy.silence
      yield* until("down", 2 * heartbeatTtl, () => !isUp())
      yield* untilUp
      const workspace = newId<WorkspaceId>()
      const before = feed.revisionOf(workspace)
      yield* notify(workspace)
      yield* until("notified", 1_000, () => feed.revisionOf(workspace) !== before)
    })
  )

  it.live("stays down behind a pooler that drops notifications, and logs it once", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database, { pooler: true })
      const { isUp, lines } = yield* feedAt(proxy.url, database)
      const started = performance.now()
      // Long enough for the feed to reconnect twice.
      while (performance.now() - started < 8_000) {
        assert.isFalse(isUp())
        yield* Effect.sleep("20 millis")
      }
      assert.deepStrictEqual(lines, [downLine])
    })
  )

  it.live("closes at once when its connections are silent, without a log line", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      const closed = yield* Effect.scoped(
        Effect.gen(function* () {
          const { lines, untilUp } = yield* feedAt(proxy.url, database)
          yield* untilUp
          yield* proxy.silence
          return { lines, since: performance.now() }
        })
      )
      assert.isBelow(performance.now() - closed.since, 1_000)
      assert.deepStrictEqual(closed.lines, [])
    })
  )
})
