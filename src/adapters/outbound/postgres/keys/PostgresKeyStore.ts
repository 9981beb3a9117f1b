import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { withSpans } from "../../../../application/observability/Instrumentation.ts"
import { KeyStore } from "../../../../application/ports/KeyStore.ts"
import { InvalidKey, type KeyHash, KeyRecord } from "../../../../domain/ApiKey.ts"
import { Database } from "../Database.ts"
import type { Statement } from "../driver/Query.ts"
import { makeBatchedLookup } from "../driver/QueryPool.ts"
import { makeKeyUsageWriter } from "./KeyUsageWriter.ts"

const selectKeysText = `select requested.ordinal::int, k.id, k.revoked_at is not null as revoked, k.expires_at,
      u.must_reset_password as owner_must_reset,
      case when w.id is not null
        then json_build_object('id', w.id, 'tier', w.tier, 'billing_status', w.billing_status)
      end as workspace
    from unnest($1::text[]) with ordinality requested (key_hash, ordinal)
    join api_keys k on k.key_hash = decode(requested.key_hash, 'hex')
    join users u on u.id = k.created_by
    left join workspaces w on w.id = k.workspace_id`

/** Selects keys with their owners and workspaces. `ordinal` is the position in `hashes`, counted from 1. */
export const selectKeysByHash = (hashes: ReadonlyArray<KeyHash>): Statement => ({
  text: selectKeysText,
  params: [`{${hashes.join()}}`]
})

const decodeKeyRecord = Schema.decodeUnknownSync(KeyRecord)

const flushInterval = "1 second"

/** How long the last write can delay the exit of the process. */
const lastFlushTimeout = "2 seconds"

const makeKeyStore = Effect.gen(function* () {
  const database = yield* Database
  // All keys are in one partition, because the workspace of a key is unknown before the lookup, and all lookups are
  // equally fast.
  const findRow = makeBatchedLookup(database.queryKeys, selectKeysByHash, () => "keys")
  const usageWriter = yield* makeKeyUsageWriter
  yield* Effect.addFinalizer(() => Effect.ignore(Effect.timeout(usageWriter.flush, lastFlushTimeout)))
  yield* Effect.forkScoped(Effect.repeat(usageWriter.flush, Schedule.spaced(flushInterval)))
  const store = KeyStore.of({
    find: (hash) =>
      Effect.flatMap(findRow(hash), (row) =>
        row === undefined ? Effect.fail(InvalidKey) : Effect.succeed(decodeKeyRecord(row))
      ),
    markUsed: usageWriter.record
  })
  return yield* withSpans("KeyStore", store)
})

/** Provides the keys in PostgreSQL. Writes the last use of each key in the background, and when the layer closes. */
export const layer: Layer.Layer<KeyStore, never, Database | PgClient.PgClient> = Layer.effect(
  KeyStore,
  makeKeyStore
)
