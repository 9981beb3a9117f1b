/** A table whose changes send notifications, and the queries that find the workspaces of its rows. */
interface NotifyingTable {
  readonly table: string
  /** Finds the workspaces of all rows of the table `%s`. */
  readonly ofRows: string
  /** Finds the workspaces of the row `$1`. */
  readonly ofRow: string
  /** True if a separate trigger notifies of updates of this table. */
  readonly hasOwnUpdate?: boolean
}

const byColumn = (table: string, column: string): NotifyingTable => ({
  table,
  ofRows: `select ${column} from %s`,
  ofRow: `select ($1).${column}`
})

const byPrompt = (table: string, hasOwnUpdate = false): NotifyingTable => ({
  table,
  ofRows: "select p.workspace_id from %s c join prompts p on p.id = c.prompt_id",
  ofRow: "select p.workspace_id from prompts p where p.id = ($1).prompt_id",
  hasOwnUpdate
})

const notifyingTables: ReadonlyArray<NotifyingTable> = [
  byColumn("workspaces", "id"),
  byColumn("folders", "workspace_id"),
  byColumn("tags", "workspace_id"),
  byColumn("fragments", "workspace_id"),
  byColumn("prompts", "workspace_id"),
  byPrompt("prompt_tags", true),
  byPrompt("prompt_versions"),
  byPrompt("prompt_fragments"),
  {
    table: "users",
    ofRows: "select k.workspace_id from %s c join api_keys k on k.created_by = c.id",
    ofRow: "select k.workspace_id from api_keys k where k.created_by = ($1).id",
    hasOwnUpdate: true
  }
]

/**
 * Makes the triggers of one table. Logical replication runs row triggers but no statement triggers. Each table
 * therefore has a row trigger that runs only for rows that arrive by logical replication (`Triggers.ts`). This trigger
 * handles the operations that have no other row trigger.
 */
const makeTriggers = ({ table, ofRows, ofRow, hasOwnUpdate }: NotifyingTable): ReadonlyArray<string> => {
  const makeTrigger = (operation: string, referencing: string) =>
    `create trigger notify_${operation} after ${operation} on ${table} ${referencing}
      for each statement execute function notify_changes('${ofRows}')`
  return [
    makeTrigger("insert", "referencing new table as new_rows"),
    ...(hasOwnUpdate
      ? []
      : [makeTrigger("update", "referencing old table as old_rows new table as new_rows")]),
    makeTrigger("delete", "referencing old table as new_rows"),
    makeTrigger("truncate", ""),
    `create trigger notify_row after insert or ${hasOwnUpdate ? "" : "update or "}delete on ${table}
      for each row execute function notify_row('${ofRow}')`
  ]
}

/**
 * The change notifications. Every write that a reader could notice sends `NOTIFY prompt_retrieval_changes`. The payload
 * is the id of a workspace, or `*` if any workspace may have changed, such as when a table is truncated. A transaction
 * notifies each workspace once. A change of `last_used_at` alone sends nothing.
 */
export const notifications: ReadonlyArray<string> = [
  // Triggers pass the query `ofRows` as the argument.
  `create function notify_changes() returns trigger language plpgsql set search_path from current as $$
    declare
      workspace uuid;
      query text;
    begin
      if tg_op = 'TRUNCATE' then
        perform pg_notify('prompt_retrieval_changes', '*');
        return null;
      end if;
      query := format(tg_argv[0], 'new_rows');
      if tg_op = 'UPDATE' then
        query := query || ' union ' || format(tg_argv[0], 'old_rows');
      end if;
      for workspace in execute 'select distinct * from (' || query || ') changed' loop
        if workspace is not null then
          perform pg_notify('prompt_retrieval_changes', workspace::text);
        end if;
      end loop;
      return null;
    end
  $$`,
  // Triggers pass the query `ofRow` as the argument.
  `create function notify_row() returns trigger language plpgsql set search_path from current as $$
    declare
      workspace uuid;
    begin
      if tg_op <> 'INSERT' then
        for workspace in execute tg_argv[0] using old loop
          perform pg_notify('prompt_retrieval_changes', workspace::text) where workspace is not null;
        end loop;
      end if;
      if tg_op <> 'DELETE' then
        for workspace in execute tg_argv[0] using new loop
          perform pg_notify('prompt_retrieval_changes', workspace::text) where workspace is not null;
        end loop;
      end if;
      return null;
    end
  $$`,
  ...notifyingTables.flatMap(makeTriggers),
  // Notifies only if a row gets another prompt or another tag. Editing a prompt also updates its `prompt_tags` rows,
  // but the trigger on `prompts` already notifies of that edit.
  `create function notify_tagging() returns trigger language plpgsql set search_path from current as $$
    begin
      perform pg_notify('prompt_retrieval_changes', p.workspace_id::text)
      from prompts p where p.id in (old.prompt_id, new.prompt_id);
      return null;
    end
  $$`,
  `create trigger notify_update after update on prompt_tags for each row
    when ((old.prompt_id, old.tag_id) is distinct from (new.prompt_id, new.tag_id))
    execute function notify_tagging()`,
  // Notifies the workspaces of the user's API keys, including the workspace of a key that another transaction inserts
  // at the same time. The insert checks its foreign key, which locks the user's row until the other transaction ends.
  // If the row is locked, this function notifies every workspace instead of waiting, because a revocation must not
  // wait. If the row is not locked, this function locks it, so that the other transaction has to wait. The function
  // also notifies every workspace at higher isolation levels, where the snapshot may be older than a key, in sessions
  // that do not check foreign keys, and if row-level security may hide keys from the session.
  `create function notify_owner() returns trigger language plpgsql set search_path from current as $$
    begin
      if current_setting('transaction_isolation') = 'read committed'
        and current_setting('session_replication_role') <> 'replica'
        and not row_security_active('api_keys') then
        perform from users where id = new.id for update skip locked;
        if found then
          perform pg_notify('prompt_retrieval_changes', k.workspace_id::text)
          from api_keys k where k.created_by = new.id and k.workspace_id is not null;
          return null;
        end if;
      end if;
      perform pg_notify('prompt_retrieval_changes', '*');
      return null;
    end
  $$`,
  `create trigger notify_owner after update on users for each row
    when ((old.id, old.must_reset_password) is distinct from (new.id, new.must_reset_password))
    execute function notify_owner()`,
  // If an API key moves to another workspace and keeps its owner, PostgreSQL does not check the foreign key
  // `created_by`, so it does not lock the owner's row. This function takes that lock.
  `create function lock_owner() returns trigger language plpgsql set search_path from current as $$
    begin
      perform from users where id = new.created_by for key share;
      return null;
    end
  $$`,
  `create trigger lock_owner after update on api_keys for each row
    when (old.workspace_id is distinct from new.workspace_id) execute function lock_owner()`,
  `create function notify_key() returns trigger language plpgsql set search_path from current as $$
    begin
      if tg_op <> 'INSERT' and old.workspace_id is not null then
        perform pg_notify('prompt_retrieval_changes', old.workspace_id::text);
      end if;
      if tg_op <> 'DELETE' and new.workspace_id is not null then
        perform pg_notify('prompt_retrieval_changes', new.workspace_id::text);
      end if;
      return null;
    end
  $$`,
  `create trigger notify_key after insert or delete on api_keys
    for each row execute function notify_key()`,
  `create trigger notify_key_update after update on api_keys for each row
    when ((old.id, old.workspace_id, old.created_by, old.key_hash, old.revoked_at, old.expires_at)
      is distinct from (new.id, new.workspace_id, new.created_by, new.key_hash, new.revoked_at, new.expires_at))
    execute function notify_key()`,
  `create trigger notify_truncate after truncate on api_keys
    for each statement execute function notify_changes('')`
]
