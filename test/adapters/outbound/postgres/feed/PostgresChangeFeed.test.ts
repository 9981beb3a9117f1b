import { assert, describe, it } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import * as Redacted from "effect/Redacted"
import { Database } from "../../../../../src/adapters/outbound/postgres/Database.ts"
import { layer } from "../../../../../src/adapters/outbound/postgres/feed/PostgresChangeFeed.ts"
import { channel } from "../../../../../src/adapters/outbound/postgres/schema/Triggers.ts"
import { checkIsUp, revisionOf } from "../../../../../src/application/cache/RevisionedCache.ts"
import { ChangeFeed } from "../../../../../src/application/ports/ChangeFeed.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { newId } from "../../../../support/archives.ts"
import { connectClient, freshDatabase, onServer, toDatabaseUrl } from "../../../../support/database/server.ts"
import { makeTest } from "../../../../support/makeTest.ts"
import { proxyToUrl } from "../../../../support/network/tcpProxy.ts"

/** Waits until a condition holds. If the condition never holds, the test times out. */
const waitUntil = (holds: () => boolean): Effect.Effect<void> =>
  Effect.suspend(() => (holds() ? Effect.void : Effect.andThen(Effect.sleep("2 millis"), waitUntil(holds))))

/** Starts a feed of the database at `url` and collects its log. `notify` sends notifications directly to PostgreSQL. */
const startFeed = Effect.fnUntraced(function* (url: string, database: string) {
  const lines: Array<unknown> = []
  const logger = Logger.layer([Logger.make(({ message }) => lines.push(message))])
  const context = yield* Layer.build(
    layer().pipe(Layer.provide(Database.layer({ url: Redacted.make(url) })), Layer.provide(logger))
  )
  const feed = Context.get(context, ChangeFeed)
  const sql = yield* connectClient(toDatabaseUrl(database))
  const notify = (workspace: WorkspaceId) => Effect.orDie(sql.notify(channel, workspace))
  return { feed, lines, notify, waitUntilUp: waitUntil(() => checkIsUp(feed)) }
})

const downLine = ["Change feed down; caching disabled"]
const restoredLine = ["Change feed restored; caching enabled"]

// The tests can run concurrently, because each has a separate database and mostly waits.
describe.concurrent("the PostgreSQL change feed", { timeout: 60_000 }, () => {
  const test = makeTest(it.live)
  test("a notification raises only the revision of its workspace, and the feed calls its listeners with the workspace", function* () {
    const database = yield* freshDatabase
    const { feed, lines, notify, waitUntilUp } = yield* startFeed(toDatabaseUrl(database), database)
    yield* waitUntilUp
    const calls: Array<WorkspaceId | undefined> = []
    feed.onChange((workspace) => calls.push(workspace))
    const [changed, other] = [newId<WorkspaceId>(), newId<WorkspaceId>()]
    const [same, now] = [revisionOf(feed, other), feed.latestRevision]
    yield* notify(changed)
    yield* waitUntil(() => calls.length === 1)
    assert.deepStrictEqual(calls, [changed])
    assert.isAbove(revisionOf(feed, changed), now)
    assert.strictEqual(revisionOf(feed, other), same)
    assert.deepStrictEqual(lines, [])
  })

  test("the feed goes down when PostgreSQL terminates its connection, and raises every revision when the feed is up again", function* () {
    const database = yield* freshDatabase
    const { feed, lines, waitUntilUp } = yield* startFeed(toDatabaseUrl(database), database)
    yield* waitUntilUp
    const calls: Array<readonly [workspace: WorkspaceId | undefined, isUp: boolean]> = []
    feed.onChange((workspace) => calls.push([workspace, checkIsUp(feed)]))
    const before = feed.latestRevision
    yield* onServer(`select pg_terminate_backend(pid) from pg_stat_activity
          where datname = '${database}' and query ilike 'listen%'`)
    yield* waitUntil(() => calls.length > 0)
    assert.deepStrictEqual(calls[0], [undefined, false])
    yield* waitUntilUp
    assert.isAbove(revisionOf(feed, newId<WorkspaceId>()), before)
    const terminated = `${downLine[0]}: terminating connection due to administrator command`
    assert.deepStrictEqual(lines, [[terminated], restoredLine])
  })

  test("the feed replaces connections that have become silent, and closes without waiting for silent connections", function* () {
    const database = yield* freshDatabase
    const proxy = yield* proxyToUrl(toDatabaseUrl(database))
    const { feed, lines, notify, waitUntilUp } = yield* startFeed(proxy.url, database)
    yield* waitUntilUp
    yield* proxy.silence
    yield* waitUntil(() => !checkIsUp(feed))
    yield* waitUntilUp
    const workspace = newId<WorkspaceId>()
    const before = revisionOf(feed, workspace)
    yield* notify(workspace)
    yield* waitUntil(() => revisionOf(feed, workspace) !== before)
    yield* proxy.silence
    assert.deepStrictEqual(lines, [downLine, restoredLine])
  })
})
