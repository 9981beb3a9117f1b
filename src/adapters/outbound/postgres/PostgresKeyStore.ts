import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import { withSpanIfTraced } from "../../../application/Spans.ts"
import { BillingStatus } from "../../../domain/Billing.ts"
import { ApiKeyId, InvalidKey, type KeyHash, type KeyRecord } from "../../../domain/ApiKey.ts"
import { WorkspaceId } from "../../../domain/Prompt.ts"
import { makeBatchedLookup } from "./BatchedLookup.ts"
import { Database, type Statement } from "./Database.ts"
import { makeKeyUsageWriter } from "./KeyUsageWriter.ts"

/** Keys by their hashes, with their owners' and workspaces' states, all by index; `n` is the hash's place. */
export const findKeys = (hashes: ReadonlyArray<KeyHash>): Statement => ({
  text: `select asked.n::int, k.id, k.revoked_at is not null as revoked, u.must_reset_password as owner_must_reset,
      case when w.id is not null
        then json_build_object('id', w.id, 'tier', w.tier, 'billing_status', w.billing_status)
      end as workspace
    from unnest($1::text[]) with ordinality asked (key_hash, n)
    join api_keys k on k.key_hash = decode(asked.key_hash, 'hex')
    join users u on u.id = k.created_by left join workspaces w on w.id = k.workspace_id`,
  params: [`{${hashes.join()}}`]
})

const decode: (row: unknown) => KeyRecord = Schema.decodeUnknownSync(
  Schema.Struct({
    id: ApiKeyId,
    revoked: Schema.Boolean,
    owner_must_reset: Schema.Boolean,
    workspace: Schema.NullOr(
      Schema.Struct({ id: WorkspaceId, tier: Schema.String, billing_status: BillingStatus })
    )
  })
)

/** How often what was used is written. */
const flushInterval = "1 second"

/** The keys in PostgreSQL. What was used is written behind, and once more when the layer closes. */
export const layer: Layer.Layer<KeyStore, never, Database | PgClient> = Layer.effect(
  KeyStore,
  Effect.gen(function* () {
    const { queryKeys: lookUp } = yield* Database
    // Whose a key is, only the look-up tells, and all are equally quick.
    const find = yield* makeBatchedLookup(lookUp, findKeys, () => "keys")
    const usage = yield* makeKeyUsageWriter
    yield* Effect.addFinalizer(() => usage.flush)
    yield* Effect.forkScoped(Effect.repeat(usage.flush, Schedule.spaced(flushInterval)))
    return KeyStore.of({
      find: withSpanIfTraced("KeyStore.find")((hash: KeyHash) =>
        Effect.flatMap(find(hash), (row) =>
          row === undefined ? Effect.fail(InvalidKey) : Effect.succeed(decode(row))
        )
      ),
      markUsed: usage.record
    })
  })
)
