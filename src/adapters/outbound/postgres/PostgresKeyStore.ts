import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import { CurrentSourcePrefetch, type SourcePrefetch } from "../../../application/SourcePrefetch.ts"
import { withSpanIfTraced } from "../../../application/Spans.ts"
import { makeStateLog } from "../../../application/StateLog.ts"
import { InvalidKey, type KeyHash, type KeyRecord } from "../../../domain/ApiKey.ts"
import { makeBatchedLookup } from "./BatchedLookup.ts"
import type { Query, Row } from "./connection/Query.ts"
import { Database } from "./Database.ts"
import { decodeKeyRecord, selectKeysByHash, selectKeyWithSource } from "./KeyQueries.ts"
import { makeKeyUsageWriter } from "./KeyUsageWriter.ts"
import { decodeSource } from "./PromptRows.ts"

/** How often the recorded use of keys is written. */
const flushInterval = "1 second"

/** How long the last write may delay the end of the process. */
const lastFlushTimeout = "2 seconds"

/** How long a key lookup waits for a first read, in milliseconds. A lock on the prompts must not delay the lookup further. */
const firstReadTimeoutMs = 50

/** How long keys are looked up alone after a first read that took too long, in milliseconds. */
const firstReadPauseMs = 1_000

/** Looks up a key by its hash. */
type KeyLookup = (hash: KeyHash) => Effect.Effect<KeyRecord | undefined, Unavailable>

const toKeyRecord = (row: Row | undefined): KeyRecord | undefined =>
  row === undefined ? undefined : decodeKeyRecord(row)

/**
 * Returns a lookup that makes first reads: for a request with a `SourcePrefetch`, one statement reads the key and the
 * source of the prompt. If the statement fails or takes too long, `lookUpKey` looks the key up. It also does so for
 * requests without a prefetch and while a first read is in flight, so that the lookups of many callers share statements.
 */
const makeLookupWithPrefetch = (queryFirstReads: Query, lookUpKey: KeyLookup): Effect.Effect<KeyLookup> =>
  Effect.map(Effect.context<never>(), (context) => {
    const fork = Effect.runForkWith(context)
    const stateLog = makeStateLog({ failed: "Could not read a prompt together with its key" })
    let isInFlight = false
    let pausedUntil = 0

    const readFirst = (hash: KeyHash, prefetch: SourcePrefetch) =>
      Effect.callback<KeyRecord | undefined, Unavailable>((resume) => {
        isInFlight = true
        const timer = setTimeout(() => {
          pausedUntil = performance.now() + firstReadPauseMs
          resume(lookUpKey(hash))
        }, firstReadTimeoutMs)
        const read = queryFirstReads(selectKeyWithSource(hash, prefetch.prompt)).pipe(
          Effect.map(([row]) => {
            const record = toKeyRecord(row)
            if (record?.workspace && row?.prompt_id)
              prefetch.store(record.workspace.id, decodeSource({ ...row, id: row.prompt_id }))
            return record
          }),
          Effect.tapDefect((defect) => stateLog.down(String(defect)))
        )
        fork(read).addObserver((exit) => {
          isInFlight = false
          clearTimeout(timer)
          resume(Exit.isSuccess(exit) ? exit : lookUpKey(hash))
        })
        return Effect.sync(() => clearTimeout(timer))
      })

    return (hash) =>
      Effect.flatMap(CurrentSourcePrefetch, (prefetch) =>
        prefetch === undefined || isInFlight || performance.now() < pausedUntil
          ? lookUpKey(hash)
          : readFirst(hash, prefetch)
      )
  })

const makeKeyStore = (
  makeLookup: (database: Database["Service"], lookUpKey: KeyLookup) => Effect.Effect<KeyLookup>
) =>
  Effect.gen(function* () {
    const database = yield* Database
    // One partition: the workspace of a key is unknown before the lookup, and all lookups are equally fast.
    const findRow = yield* makeBatchedLookup(database.queryKeys, selectKeysByHash, () => "keys")
    const lookUp = yield* makeLookup(database, (hash) => Effect.map(findRow(hash), toKeyRecord))
    const usageWriter = yield* makeKeyUsageWriter
    yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(usageWriter.flush, lastFlushTimeout)))
    yield* Effect.forkScoped(Effect.repeat(usageWriter.flush, Schedule.spaced(flushInterval)))
    return KeyStore.of({
      find: withSpanIfTraced("KeyStore.find")((hash: KeyHash) =>
        Effect.flatMap(lookUp(hash), (record) =>
          record === undefined ? Effect.fail(InvalidKey) : Effect.succeed(record)
        )
      ),
      markUsed: usageWriter.record
    })
  })

/** The keys in PostgreSQL. Their use is written in the background, and once more when the layer closes. */
export const layer: Layer.Layer<KeyStore, never, Database | PgClient> = Layer.effect(
  KeyStore,
  makeKeyStore((_, lookUpKey) => Effect.succeed(lookUpKey))
)

/**
 * Like `layer`, but a lookup may also read the prompt of `CurrentSourcePrefetch`, in the same statement. Use it only if the
 * prompts are in the same database.
 */
export const prefetchingLayer: typeof layer = Layer.effect(
  KeyStore,
  makeKeyStore(({ queryFirstReads }, lookUpKey) =>
    queryFirstReads === undefined
      ? Effect.succeed(lookUpKey)
      : makeLookupWithPrefetch(queryFirstReads, lookUpKey)
  )
)
