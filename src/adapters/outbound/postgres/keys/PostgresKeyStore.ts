import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import { KeyStore } from "../../../../application/ports/KeyStore.ts"
import { withSpanIfTraced } from "../../../../application/support/Observability.ts"
import { InvalidKey, type KeyHash } from "../../../../domain/ApiKey.ts"
import { makeBatchedLookup } from "../driver/BatchedLookup.ts"
import { Database } from "../Database.ts"
import { decodeKeyRecord, selectKeysByHash } from "./KeyQueries.ts"
import { makeKeyUsageWriter } from "./KeyUsageWriter.ts"

const flushInterval = "1 second"

/** How long the last write may delay the exit of the process. */
const lastFlushTimeout = "2 seconds"

const makeKeyStore = Effect.gen(function* () {
  const database = yield* Database
  // All keys are in one partition: the workspace of a key is unknown before the lookup, and all lookups are equally
  // fast.
  const findRow = yield* makeBatchedLookup(database.queryKeys, selectKeysByHash, () => "keys")
  const usageWriter = yield* makeKeyUsageWriter
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(usageWriter.flush, lastFlushTimeout)))
  yield* Effect.forkScoped(Effect.repeat(usageWriter.flush, Schedule.spaced(flushInterval)))
  return KeyStore.of({
    find: withSpanIfTraced("KeyStore.find")((hash: KeyHash) =>
      Effect.flatMap(findRow(hash), (row) =>
        row === undefined ? Effect.fail(InvalidKey) : Effect.succeed(decodeKeyRecord(row))
      )
    ),
    markUsed: usageWriter.record
  })
})

/**
 * Provides the keys in PostgreSQL. The last use of keys is written in the background, and once more when the layer
 * closes.
 */
export const layer: Layer.Layer<KeyStore, never, Database | PgClient> = Layer.effect(KeyStore, makeKeyStore)
