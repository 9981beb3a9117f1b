import * as Schema from "effect/Schema"
import { Timestamp } from "./Timestamp.ts"
import { WorkspaceId } from "./WorkspaceId.ts"

/** A recorded change or export. Never contains the plaintext or the hash of a key, or the text of a prompt. */
export const AuditEvent = Schema.Struct({
  /** A decimal number. Ids increase in the order in which events are written. */
  id: Schema.String,
  /** The start time of the transaction that recorded the event, by the clock of the database. */
  at: Timestamp,
  /** The name of the person or program that made the change or export. */
  actor: Schema.String,
  /** The kind of the subject and the kind of the event, such as `key.rotated`. */
  action: Schema.String,
  /** The workspace that was changed or exported, or that has the changed key. Null for users and for unassigned keys. */
  workspace_id: Schema.NullOr(WorkspaceId),
  /** The workspace's name before the event, the user's email, the key's id, or the source of the import or edit. */
  subject: Schema.String,
  /** Further facts, such as the new values of the fields that changed. */
  details: Schema.JsonObject
})
export type AuditEvent = typeof AuditEvent.Type

/** A change or an export to record: an event without the fields that the audit log adds. */
export type AuditEntry = Omit<AuditEvent, "id" | "at" | "actor">
