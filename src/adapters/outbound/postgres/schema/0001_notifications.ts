/**
 * Returns the SQL that creates the notification triggers of a table. The query `workspacesOfRows` returns the
 * workspaces of all rows of `%1$s`. The query `workspacesOfRow` returns the workspaces of the row `$1`.
 */
const makeTriggers = (
  table: string,
  workspacesOfRows: string,
  workspacesOfRow: string
) => `create trigger notify_insert after insert on ${table} referencing new table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_update after update on ${table} referencing old table as old_rows new table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_delete after delete on ${table} referencing old table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_truncate after truncate on ${table}
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_row after insert or update or delete on ${table}
  for each row execute function notify_row('${workspacesOfRow}');
alter table ${table} enable always trigger notify_truncate, enable replica trigger notify_row;
`

const triggersOfWorkspaces = [
  makeTriggers("workspaces", "select id from %1$s c", "select ($1).id"),
  ...["folders", "tags", "fragments", "prompts"].map((table) =>
    makeTriggers(table, "select workspace_id from %1$s c", "select ($1).workspace_id")
  )
].join("\n")

/** Makes a query that returns the workspaces of the API keys of some users. */
const makeOwnerWorkspaceQuery = (users: string) =>
  `select distinct k.workspace_id from api_keys k where k.created_by in (${users}) and k.workspace_id is not null`

const ownerWorkspacesOfRows = makeOwnerWorkspaceQuery("select c.id from %1$s c")

/**
 * Migration 1, part 3: the change notifications. Every write that a reader could notice sends `NOTIFY
 * prompt_retrieval_changes`. The payload is the id of the changed workspace. The payload `*` means that any workspace
 * may have changed, for example after a TRUNCATE. PostgreSQL sends equal notifications of a transaction only once. A
 * change of `last_used_at` alone sends nothing.
 *
 * Logical replication runs row triggers but no statement triggers. The row trigger `notify_row` therefore handles the
 * rows that arrive by logical replication, for each operation that has no other row trigger.
 */
export const notifications = `
-- Notifies workspaces. If there are many, or one of them is null, any workspace may have changed.
create function notify_workspaces(workspaces uuid[]) returns void language plpgsql set search_path from current as $$
    begin
      if cardinality(workspaces) > 1000 or array_position(workspaces, null) is not null then
        perform pg_notify('prompt_retrieval_changes', '*');
      else
        perform pg_notify('prompt_retrieval_changes', workspace::text) from unnest(workspaces) workspace;
      end if;
    end
  $$;

-- The argument is a query that finds the workspaces of all rows of the table \`%1$s\`.
create function notify_changes() returns trigger language plpgsql set search_path from current as $$
    declare
      rows text := 'new_rows';
      workspaces uuid[];
    begin
      if tg_op = 'TRUNCATE' then
        perform pg_notify('prompt_retrieval_changes', '*');
        return null;
      end if;
      if tg_op = 'UPDATE' then
        rows := '(select * from old_rows union all select * from new_rows)';
      end if;
      execute format('select array_agg(distinct workspace) from (' || tg_argv[0] || ') changed (workspace)', rows)
        into workspaces;
      perform notify_workspaces(workspaces);
      return null;
    end
  $$;

-- The argument is a query that finds the workspaces of the row \`$1\`.
create function notify_row() returns trigger language plpgsql set search_path from current as $$
    declare
      query text := 'select array_agg(distinct workspace) from (' || tg_argv[0] || ') changed (workspace)';
      workspaces uuid[];
    begin
      if tg_op <> 'INSERT' then
        execute query using old into workspaces;
        perform notify_workspaces(workspaces);
      end if;
      if tg_op <> 'DELETE' then
        execute query using new into workspaces;
        perform notify_workspaces(workspaces);
      end if;
      return null;
    end
  $$;

${triggersOfWorkspaces}
create trigger notify_insert after insert on users referencing new table as new_rows
  for each statement execute function notify_changes('${ownerWorkspacesOfRows}');
create trigger notify_delete after delete on users referencing old table as new_rows
  for each statement execute function notify_changes('${ownerWorkspacesOfRows}');
create trigger notify_truncate after truncate on users
  for each statement execute function notify_changes('${ownerWorkspacesOfRows}');
create trigger notify_row after insert or delete on users
  for each row execute function notify_row('${makeOwnerWorkspaceQuery("($1).id")}');
alter table users enable always trigger notify_truncate, enable replica trigger notify_row;

-- Takes the only row lock that conflicts with the lock of the queries in part 4.
create function lock_moving() returns trigger language plpgsql set search_path from current as $$
    begin
      perform from prompts where id = old.id for update;
      return new;
    end
  $$;
create trigger lock_moving before update on prompts for each row
  when (old.workspace_id is distinct from new.workspace_id) execute function lock_moving();
alter table prompts enable always trigger lock_moving;

-- Notifies the workspaces of the user's API keys, including the workspace of a key that another transaction inserts at
-- the same time. The insert checks its foreign key, which locks the user's row until the other transaction ends. If the
-- row is locked, this function notifies every workspace instead of waiting, because a revocation must not wait. If the
-- row is not locked, this function locks it, so that the other transaction has to wait. The function also notifies every
-- workspace at higher isolation levels, where the snapshot may be older than a key, in sessions that do not check
-- foreign keys, and if row-level security may hide keys from the session.
create function notify_owner() returns trigger language plpgsql set search_path from current as $$
    begin
      if current_setting('transaction_isolation') = 'read committed'
        and current_setting('session_replication_role') <> 'replica'
        and not row_security_active('api_keys') then
        perform from users where id = new.id for update skip locked;
        if found then
          perform notify_workspaces(array(${makeOwnerWorkspaceQuery("new.id")}));
          return null;
        end if;
      end if;
      perform pg_notify('prompt_retrieval_changes', '*');
      return null;
    end
  $$;
create trigger notify_owner after update on users for each row
  when ((old.id, old.must_reset_password) is distinct from (new.id, new.must_reset_password))
  execute function notify_owner();
alter table users enable always trigger notify_owner;

-- Locks the row of the key's owner, for \`notify_owner\`, if PostgreSQL does not: it checks the foreign key \`created_by\`
-- only if the owner changes, and not in sessions with \`session_replication_role = replica\`.
create function notify_key() returns trigger language plpgsql set search_path from current as $$
    begin
      if (tg_op = 'UPDATE' and old.workspace_id is distinct from new.workspace_id)
        or (tg_op <> 'DELETE' and current_setting('session_replication_role') = 'replica') then
        perform from users where id = new.created_by for key share;
      end if;
      if tg_op <> 'INSERT' and old.workspace_id is not null then
        perform pg_notify('prompt_retrieval_changes', old.workspace_id::text);
      end if;
      if tg_op <> 'DELETE' and new.workspace_id is not null then
        perform pg_notify('prompt_retrieval_changes', new.workspace_id::text);
      end if;
      return null;
    end
  $$;
create trigger notify_key after insert or delete on api_keys
  for each row execute function notify_key();
create trigger notify_key_update after update on api_keys for each row
  when ((old.id, old.workspace_id, old.created_by, old.key_hash, old.revoked_at, old.expires_at)
  is distinct from (new.id, new.workspace_id, new.created_by, new.key_hash, new.revoked_at, new.expires_at))
  execute function notify_key();
create trigger notify_truncate after truncate on api_keys
  for each statement execute function notify_changes('');
alter table api_keys enable always trigger notify_key, enable always trigger notify_key_update,
  enable always trigger notify_truncate;
`

/**
 * Makes a query that returns the workspaces of prompts and locks the prompts. Until the transaction ends, no other
 * transaction can move these prompts to another workspace. Only a move (`lock_moving`) or a deletion of a prompt
 * conflicts with the lock. If another transaction is moving a prompt, the query does not wait, and returns null for the
 * prompt. The query locks no prompt that its own transaction has written, because such a prompt is already locked.
 */
const makeWorkspaceQuery = (prompts: string) => `
  with changed as materialized (
    select p.id, p.workspace_id, p.xmin = pg_current_xact_id()::xid as is_own from prompts p where p.id in (${prompts})
  ), locked as materialized (
    select p.id, p.workspace_id from prompts p where p.id in (select id from changed where not is_own)
    for key share of p skip locked
  )
  select case when c.is_own then c.workspace_id else l.workspace_id end
  from changed c left join locked l on l.id = c.id`

const promptWorkspacesOfRows = makeWorkspaceQuery("select c.prompt_id from %1$s c")
const promptWorkspacesOfRow = makeWorkspaceQuery("select ($1).prompt_id")

/** Migration 1, part 4: the change notifications of the tables whose rows belong to a prompt. */
export const promptNotifications = `
create trigger notify_insert after insert on prompt_tags referencing new table as new_rows
  for each statement execute function notify_changes('${promptWorkspacesOfRows}');
create trigger notify_delete after delete on prompt_tags referencing old table as new_rows
  for each statement execute function notify_changes('${promptWorkspacesOfRows}');
create trigger notify_truncate after truncate on prompt_tags
  for each statement execute function notify_changes('${promptWorkspacesOfRows}');
create trigger notify_row after insert or delete on prompt_tags
  for each row execute function notify_row('${promptWorkspacesOfRow}');
-- Notifies only if a row gets another prompt or another tag. Editing a prompt also updates its \`prompt_tags\` rows, but
-- the trigger on \`prompts\` already notifies of that edit.
create trigger notify_update after update on prompt_tags for each row
  when ((old.prompt_id, old.tag_id) is distinct from (new.prompt_id, new.tag_id))
  execute function notify_row('${promptWorkspacesOfRow}');
alter table prompt_tags enable always trigger notify_truncate, enable replica trigger notify_row,
  enable always trigger notify_update;

${makeTriggers("prompt_versions", promptWorkspacesOfRows, promptWorkspacesOfRow)}
${makeTriggers("prompt_fragments", promptWorkspacesOfRows, promptWorkspacesOfRow)}`
