/**
 * Migration 5: when keys expire, and the audit log. Released, so this text never changes.
 *
 * A program that knows only the migrations before it works on this schema: it ignores `expires_at`, so it accepts
 * expired keys, and records no audit events. The migration locks `api_keys` against all access until it commits;
 * the time depends only on the number of keys.
 */
export const statements: ReadonlyArray<string> = [
  `alter table api_keys add column expires_at timestamptz(3) check (expires_at >= '0001-01-01 00:00:00+00' and expires_at < '10000-01-01 00:00:00+00')`,
  // A change of the expiry notifies like a revocation.
  "drop trigger notify_key_update on api_keys",
  `create trigger notify_key_update after update on api_keys for each row
    when ((old.id, old.workspace_id, old.created_by, old.key_hash, old.revoked_at, old.expires_at)
      is distinct from (new.id, new.workspace_id, new.created_by, new.key_hash, new.revoked_at, new.expires_at))
    execute function notify_key()`,
  "alter table api_keys enable always trigger notify_key_update",
  // No foreign key: the events of a workspace remain after its deletion.
  `create table audit_events (
    id bigint generated always as identity primary key,
    at timestamptz(3) not null default now(),
    actor text not null,
    action text not null,
    workspace_id uuid,
    subject text not null,
    details jsonb not null default '{}'
  )`,
  "create index audit_events_workspace on audit_events (workspace_id, id)"
]
