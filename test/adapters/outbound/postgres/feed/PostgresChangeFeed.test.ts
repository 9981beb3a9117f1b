import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { makeLayer } from "../../../../../src/adapters/outbound/postgres/feed/PostgresChangeFeed.ts"
import { channel } from "../../../../../src/adapters/outbound/postgres/feed/NotifyChannel.ts"
import { Database } from "../../../../../src/adapters/outbound/postgres/Database.ts"
import { ChangeFeed } from "../../../../../src/application/ports/ChangeFeed.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { newId } from "../../../../support/archives.ts"
import { freshDatabase, onServer, proxyTo, toDatabaseUrl } from "../../../../support/postgres.ts"

/** The longest time until the feed detects a silent connection, in milliseconds. */
const heartbeatTtlMs = 3_000
/** A limit for the time in which a feed recovers, in milliseconds: 3 s, two connection attempts and a heartbeat. */
const recoveryMs = 12_000

const waitUntil = Effect.fnUntraced(function* (what: string, timeoutMs: number, holds: () => boolean) {
  const started = performance.now()
  while (!holds()) {
    if (performance.now() - started > timeoutMs) assert.fail(`${what}: not within ${timeoutMs} ms`)
    yield* Effect.sleep("2 millis")
  }
  return performance.now() - started
})

/** Starts a feed of the database behind `url` and collects its log. `notify` notifies on a direct connection. */
const startFeed = Effect.fnUntraced(function* (url: string, database: string) {
  const lines: Array<unknown> = []
  const logger = Logger.layer([Logger.make(({ message }) => lines.push(message))])
  const context = yield* Layer.build(
    makeLayer().pipe(Layer.provide(Database.layer({ url: Redacted.make(url) })), Layer.provide(logger))
  )
  const feed = Context.get(context, ChangeFeed)
  const { sql } = yield* Effect.map(
    Layer.build(PgClient.layer({ url: Redacted.make(toDatabaseUrl(database)) })),
    (direct) => ({ sql: Context.get(direct, PgClient.PgClient) })
  ).pipe(Effect.orDie)
  const notify = (workspace: WorkspaceId) => Effect.orDie(sql.notify(channel, workspace))
  const isUp = () => feed.revision() !== undefined
  return { feed, lines, notify, isUp, waitUntilUp: waitUntil("up", recoveryMs, isUp), sql }
})

const downLine = ["Change feed down; caching disabled"]
const restoredLine = ["Change feed restored; caching enabled"]

/** Terminates the backends that listen in a database. */
const terminateListeners = (database: string) =>
  onServer(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = '${database}' and query ilike 'listen%'`)

// Each test has a separate database and waits most of the time.
describe.concurrent("the PostgreSQL change feed", { timeout: 60_000 }, () => {
  it.live("the change feed raises the revision of the workspace that changed and of no other workspace", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const { feed, lines, notify, waitUntilUp } = yield* startFeed(toDatabaseUrl(database), database)
      yield* waitUntilUp
      const [changed, other] = [newId<WorkspaceId>(), newId<WorkspaceId>()]
      const [before, same, now] = [feed.revisionOf(changed), feed.revisionOf(other), feed.revision()!]
      yield* notify(changed)
      yield* waitUntil("notified", 1_000, () => feed.revisionOf(changed) !== before)
      assert.isAbove(feed.revisionOf(changed)!, now)
      assert.strictEqual(feed.revisionOf(other), same)
      assert.deepStrictEqual(lines, [])
    })
  )

  it.live(
    "the change feed calls its listeners with the workspace that changed, and with undefined when the feed goes down",
    () =>
      Effect.gen(function* () {
        const database = yield* freshDatabase
        const { feed, isUp, notify, waitUntilUp } = yield* startFeed(toDatabaseUrl(database), database)
        yield* waitUntilUp
        const calls: Array<readonly [workspace: WorkspaceId | undefined, isUp: boolean]> = []
        feed.onChange((workspace) => calls.push([workspace, isUp()]))
        const changed = newId<WorkspaceId>()
        yield* notify(changed)
        yield* waitUntil("notified", 1_000, () => calls.length === 1)
        yield* terminateListeners(database)
        yield* waitUntil("down", 1_000, () => calls.length === 2)
        assert.deepStrictEqual(calls, [
          [changed, true],
          [undefined, false]
        ])
      })
  )

  it.live(
    "the change feed goes down immediately when its connection is terminated, and raises every revision once the feed is up again",
    () =>
      Effect.gen(function* () {
        const database = yield* freshDatabase
        const { feed, isUp, lines, waitUntilUp } = yield* startFeed(toDatabaseUrl(database), database)
        yield* waitUntilUp
        const workspace = newId<WorkspaceId>()
        const before = feed.revision()!
        yield* terminateListeners(database)
        assert.isBelow(yield* waitUntil("down", 1_000, () => !isUp()), 500)
        yield* waitUntilUp
        assert.isAbove(feed.revisionOf(workspace)!, before)
        assert.deepStrictEqual(lines, [downLine, restoredLine])
      })
  )

  it.live(
    "the change feed goes down within 3 s if its connections freeze silently, and comes up again when the connections thaw",
    () =>
      Effect.gen(function* () {
        const database = yield* freshDatabase
        const proxy = yield* proxyTo(database)
        const { feed, isUp, lines, waitUntilUp } = yield* startFeed(proxy.url, database)
        yield* waitUntilUp
        const before = feed.revision()!
        yield* proxy.freeze
        assert.isBelow(yield* waitUntil("down", 2 * heartbeatTtlMs, () => !isUp()), heartbeatTtlMs + 250)
        yield* Effect.sleep("2 seconds")
        assert.isFalse(isUp())
        yield* proxy.thaw
        yield* waitUntilUp
        assert.isAbove(feed.revisionOf(newId<WorkspaceId>())!, before)
        assert.deepStrictEqual(lines, [downLine, restoredLine])
      })
  )

  it.live("the change feed reconnects after its connections have gone permanently silent", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      const { feed, isUp, notify, waitUntilUp } = yield* startFeed(proxy.url, database)
      yield* waitUntilUp
      yield* proxy.silence
      yield* waitUntil("down", 2 * heartbeatTtlMs, () => !isUp())
      yield* waitUntilUp
      const workspace = newId<WorkspaceId>()
      const before = feed.revisionOf(workspace)
      yield* notify(workspace)
      yield* waitUntil("notified", 1_000, () => feed.revisionOf(workspace) !== before)
    })
  )

  it.live("closing the change feed does not wait for silent connections and logs nothing", () =>
    Effect.gen(function* () {
      const database = yield* freshDatabase
      const proxy = yield* proxyTo(database)
      const closed = yield* Effect.scoped(
        Effect.gen(function* () {
          const { lines, waitUntilUp } = yield* startFeed(proxy.url, database)
          yield* waitUntilUp
          yield* proxy.silence
          return { lines, since: performance.now() }
        })
      )
      assert.isBelow(performance.now() - closed.since, 1_000)
      assert.deepStrictEqual(closed.lines, [])
    })
  )
})
