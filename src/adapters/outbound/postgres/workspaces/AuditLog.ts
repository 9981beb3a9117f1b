import * as PgClient from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { SqlError } from "effect/sql/SqlError"
import { Actor } from "../../../../application/administration/Actor.ts"
import type { KeyInfo } from "../../../../application/ports/WorkspaceStore.ts"
import type { AuditEntry } from "../../../../domain/AuditEvent.ts"

/** Appends an event to the audit log in the current transaction. */
export type AuditRecorder = (entry: AuditEntry) => Effect.Effect<void, SqlError>

/** Makes the recorder that writes the current actor to each event. */
export const makeAuditRecorder: Effect.Effect<AuditRecorder, never, PgClient.PgClient | Actor> = Effect.gen(
  function* () {
    const sql = yield* PgClient.PgClient
    const actor = yield* Actor
    return ({ action, workspace_id, subject, details }) =>
      Effect.asVoid(
        sql`insert into audit_events (actor, action, workspace_id, subject, details)
          values (${actor}, ${action}, ${workspace_id}, ${subject}, ${JSON.stringify(details)}::text::jsonb)`
      )
  }
)

/** Makes the entry for an action on a key. The details also contain the name and the owner of the key. */
export const describeKey = (
  action: string,
  { id, workspace_id, name, owner }: Pick<KeyInfo, "id" | "workspace_id" | "name" | "owner">,
  details: AuditEntry["details"] = {}
): AuditEntry => ({ action, workspace_id, subject: id, details: { name, owner, ...details } })
