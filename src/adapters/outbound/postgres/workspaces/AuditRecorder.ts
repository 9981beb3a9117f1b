import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { Actor } from "../../../../application/administration/Actor.ts"
import type { AuditEntry } from "../../../../domain/workspace/AuditEvent.ts"
import { insertEvent } from "./AuditQueries.ts"
import { execute } from "../driver/Query.ts"

/** Appends entries to the audit log in the current transaction, in their order. */
export type AuditRecorder = (entries: ReadonlyArray<AuditEntry>) => Effect.Effect<void, SqlError>

/** Makes a recorder whose events have the current actor. */
export const makeAuditRecorder: Effect.Effect<AuditRecorder, never, PgClient.PgClient | Actor> = Effect.gen(
  function* () {
    const sql = yield* PgClient.PgClient
    const actor = yield* Actor
    return (entries) =>
      Effect.forEach(entries, (entry) => execute(sql, insertEvent(actor, entry)), { discard: true })
  }
)
