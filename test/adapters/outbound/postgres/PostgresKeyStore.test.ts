import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Logger from "effect/Logger"
import type { Query } from "../../../../src/adapters/outbound/postgres/connection/Query.ts"
import { Database } from "../../../../src/adapters/outbound/postgres/Database.ts"
import * as PostgresKeyStore from "../../../../src/adapters/outbound/postgres/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../../../../src/adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as PostgresWorkspaceStore from "../../../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import { largeBytes } from "../../../../src/application/LargeReadPolicy.ts"
import { KeyStore } from "../../../../src/application/ports/KeyStore.ts"
import { PromptRepo } from "../../../../src/application/ports/PromptRepo.ts"
import { WorkspaceStore } from "../../../../src/application/ports/WorkspaceStore.ts"
import { CurrentSourcePrefetch, SourcePrefetch } from "../../../../src/application/SourcePrefetch.ts"
import { hashApiKey } from "../../../../src/domain/ApiKey.ts"
import { BillingStatus, isPaid, Tier } from "../../../../src/domain/Billing.ts"
import type { PromptId } from "../../../../src/domain/Prompt.ts"
import {
  fragment,
  fragmentBinding,
  instant,
  type Key,
  key,
  newId,
  prompt,
  sample,
  toPartStream
} from "../../../support/archives.ts"
import { migratedDatabase, noPostgres } from "../../../support/postgres.ts"

/** The kinds of the statements that were sent, in order. */
class SentStatements extends Context.Service<SentStatements, Array<"key" | "first read">>()(
  "test/SentStatements"
) {}

/** Records the statements of a database. */
const recordingDatabase = Layer.effect(
  Database,
  Effect.gen(function* () {
    const sent = yield* SentStatements
    const database = yield* Database
    const record =
      (kind: (typeof sent)[number], query: Query): Query =>
      (statement) =>
        Effect.suspend(() => {
          sent.push(kind)
          return query(statement)
        })
    return Database.of({
      ...database,
      queryKeys: record("key", database.queryKeys),
      queryFirstReads: record("first read", database.queryFirstReads!)
    })
  })
).pipe(
  Layer.provideMerge(
    Layer.merge(
      migratedDatabase,
      Layer.sync(SentStatements, () => [])
    )
  )
)

/** The lines that the adapters log. */
class Log extends Context.Service<Log, { readonly log: Array<unknown> }>()("test/Log") {}

const logged = Layer.unwrap(
  Effect.sync(() => {
    const log: Array<unknown> = []
    return Layer.merge(
      Logger.layer([Logger.make(({ message }) => log.push(message))]),
      Layer.succeed(Log, { log })
    )
  })
)

const ports = Layer.mergeAll(
  PostgresKeyStore.prefetchingLayer,
  PostgresPromptRepo.layer,
  PostgresWorkspaceStore.layer
).pipe(Layer.provideMerge(recordingDatabase), Layer.provideMerge(logged))

/** Looks a key up for a request that resolves a prompt. Returns the outcome of the lookup and the prefetch. */
const findOnce = Effect.fnUntraced(function* ({ stored }: Pick<Key, "stored">, id: PromptId) {
  const keys = yield* KeyStore
  const prefetch = new SourcePrefetch(id)
  const record = yield* Effect.result(
    Effect.provideService(keys.find(stored.key_hash), CurrentSourcePrefetch, prefetch)
  )
  return { record, prefetch }
})

/**
 * Repeats `findOnce` until one statement reads the key and the prompt: on a busy machine, the statement may take more than
 * 50 ms, and then keys are looked up alone for 1 s.
 */
const findInOneStatement = Effect.fnUntraced(function* (key: Pick<Key, "stored">, id: PromptId) {
  const sent = yield* SentStatements
  for (let attempt = 0; ; attempt++) {
    const count = sent.length
    const found = yield* findOnce(key, id)
    if (sent.slice(count).join() === "first read") return found
    assert.isBelow(attempt, 1000, "the key was never looked up together with the prompt")
    yield* Effect.sleep("10 millis")
  }
})

const importSample = Effect.fnUntraced(function* (overrides: Parameters<typeof sample>[0] = {}) {
  const { importWorkspace } = yield* WorkspaceStore
  const tenant = sample(overrides)
  const half = fragment("x".repeat(largeBytes / 2))
  const large = prompt({ fragments: [fragmentBinding(half, 1), fragmentBinding(half, 2)] })
  const { archive } = tenant
  const makeExpiringKey = (expires_at: string) =>
    key(archive.workspace.id, archive.users[0]!, { expires_at: instant(expires_at) })
  const keys = {
    ...tenant.keys,
    expired: makeExpiringKey("2026-02-01T00:00:00.000Z"),
    expiresLater: makeExpiringKey("9999-01-01T00:00:00.000Z")
  }
  yield* importWorkspace(
    toPartStream({
      ...archive,
      api_keys: Object.values(keys).map(({ stored }) => stored),
      fragments: [...archive.fragments, half],
      prompts: [...archive.prompts, large]
    })
  )
  return {
    ...tenant,
    keys,
    id: archive.workspace.id,
    prompts: archive.prompts,
    greeting: archive.prompts[0]!,
    large
  }
})

/** Imports a sample, waits until a lookup reads a prompt, and runs `work` while the prompts are locked. */
const whileLocked = Effect.fnUntraced(function* <A, E, R>(
  work: (tenant: Effect.Success<ReturnType<typeof importSample>>) => Effect.Effect<A, E, R>
) {
  const tenant = yield* importSample()
  const sql = yield* PgClient.PgClient
  const sent = yield* SentStatements
  yield* findInOneStatement(tenant.keys.active, tenant.greeting.id)
  sent.length = 0
  yield* sql.withTransaction(Effect.andThen(sql`lock table prompts`, work(tenant)))
  return { ...tenant, sent }
})

describe.skipIf(noPostgres !== undefined)("key lookups that also read the prompt to resolve", () => {
  layer(ports, { excludeTestServices: true, timeout: "60 seconds" })((it) => {
    it.effect(
      "find returns the same key with and without a prefetch, and stores a source only for a small prompt that the caller may read",
      () =>
        Effect.gen(function* () {
          const keys = yield* KeyStore
          const repo = yield* PromptRepo
          const other = yield* importSample()
          for (const tier of Tier.literals) {
            for (const billing_status of BillingStatus.literals) {
              const own = yield* importSample({ tier, billing_status })
              const unknown = key(own.id, own.archive.users[0]!)
              for (const [state, sampleKey] of Object.entries({ ...own.keys, unknown })) {
                const expected = yield* Effect.result(keys.find(sampleKey.stored.key_hash))
                for (const { id } of [...own.prompts, own.large, other.greeting, prompt()]) {
                  const { record, prefetch } = yield* findInOneStatement(sampleKey, id)
                  assert.deepStrictEqual(record, expected, state)
                  const hasSource =
                    isPaid(tier) &&
                    billing_status === "active" &&
                    ["active", "second", "expiresLater"].includes(state) &&
                    own.prompts.some((listed) => listed.id === id)
                  const source = hasSource ? yield* repo.getSource(own.id, id) : undefined
                  assert.deepStrictEqual(prefetch.find(own.id, id), source, `${tier} ${state}`)
                  assert.isUndefined(prefetch.find(other.id, id))
                  assert.isUndefined(prefetch.find(own.id, newId()))
                }
              }
            }
          }
        })
    )

    it.effect("a lookup without a prefetch reads only the key", () =>
      Effect.gen(function* () {
        const { keys } = yield* importSample()
        const sent = yield* SentStatements
        sent.length = 0
        const store = yield* KeyStore
        yield* store.find(hashApiKey(keys.active.plaintext))
        assert.deepStrictEqual(sent, ["key"])
      })
    )

    it.effect(
      "while the prompts are locked, each key is found within 0.5 s, and only the first lookup waits for them",
      () =>
        Effect.gen(function* () {
          const { keys, greeting, id, sent } = yield* whileLocked(({ keys, greeting, id }) =>
            Effect.gen(function* () {
              for (const key of [keys.active, keys.second, keys.revoked]) {
                const { record, prefetch } = yield* Effect.timeout(findOnce(key, greeting.id), "500 millis")
                assert.strictEqual(record._tag, "Success")
                assert.isUndefined(prefetch.find(id, greeting.id))
              }
            })
          )
          assert.deepStrictEqual(sent, ["first read", "key", "key", "key"])
          const { prefetch } = yield* findInOneStatement(keys.active, greeting.id)
          assert.isDefined(prefetch.find(id, greeting.id))
        })
    )

    it.effect("an interrupted lookup sends no second statement, and later lookups read prompts again", () =>
      Effect.gen(function* () {
        const { keys, greeting, id, sent } = yield* whileLocked(({ keys, greeting }) =>
          Effect.gen(function* () {
            const lookup = yield* Effect.forkChild(findOnce(keys.active, greeting.id), {
              startImmediately: true
            })
            yield* Fiber.interrupt(lookup)
            yield* Effect.sleep("100 millis")
          })
        )
        assert.deepStrictEqual(sent, ["first read"])
        const { prefetch } = yield* findInOneStatement(keys.active, greeting.id)
        assert.isDefined(prefetch.find(id, greeting.id))
      })
    )

    it.effect("a key is found if the statement that also reads the prompt fails, which is logged once", () =>
      Effect.gen(function* () {
        const { log } = yield* Log
        log.length = 0
        const { keys, greeting, id } = yield* importSample()
        const sql = yield* PgClient.PgClient
        yield* findInOneStatement(keys.active, greeting.id)
        yield* Effect.acquireUseRelease(
          sql`alter table prompts rename column target_model to renamed`,
          () =>
            Effect.gen(function* () {
              for (let attempt = 0; attempt < 3; attempt++) {
                const { record, prefetch } = yield* findOnce(keys.active, greeting.id)
                assert.strictEqual(record._tag, "Success")
                assert.isUndefined(prefetch.find(id, greeting.id))
              }
            }),
          () => sql`alter table prompts rename column renamed to target_model`
        )
        const { prefetch } = yield* findInOneStatement(keys.active, greeting.id)
        assert.isDefined(prefetch.find(id, greeting.id))
        assert.lengthOf(log, 1)
      })
    )
  })
})
