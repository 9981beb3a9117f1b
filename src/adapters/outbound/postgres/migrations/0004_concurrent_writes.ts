/**
 * Migration 4: tag lists and notifications stay right when transactions overlap, and on replicas. Released, so this
 * text never changes.
 *
 * `prompt_tags` equals `prompts` at every isolation level, and a change of a user or key reaches every workspace
 * concerned.
 */
export const statements: ReadonlyArray<string> = [
  // An update of a prompt renews the tag rows that it can see. It cannot see a row of another open transaction,
  // nor, under REPEATABLE READ, a row that was committed after its snapshot. A transaction that adds a tag row
  // therefore also writes the prompt: the two transactions wait for each other, and the later one sees the row or
  // fails with a serialization failure. A prompt that the transaction itself has written is not written again. The
  // copies depend on the prompt alone, so only a write to the prompt can change them.
  "lock table prompts, prompt_tags in share row exclusive mode",
  "drop trigger renew_listings on tags",
  `create or replace function set_listing() returns trigger language plpgsql set search_path from current as $$
    declare
      prompt record;
    begin
      select p.workspace_id, case when not p.is_archived then p.updated_at end as listed_at, p.prompt_type, p.folder_id
      into prompt from prompts p where p.id = new.prompt_id;
      -- A logical subscriber may receive the row before the prompt; the row then has the publisher's values.
      if found then
        new.workspace_id := prompt.workspace_id;
        new.listed_at := prompt.listed_at;
        new.prompt_type := prompt.prompt_type;
        new.folder_id := prompt.folder_id;
      end if;
      return new;
    end
  $$`,
  `create or replace function renew_listings() returns trigger language plpgsql set search_path from current as $$
    begin
      update prompt_tags set listed_at = null where prompt_id = new.id;
      return null;
    end
  $$`,
  // Prompts are locked in the order of their ids, so that two such statements do not deadlock. The plans depend on
  // the number of rows, so they are not cached.
  `create function confirm_listings() returns trigger language plpgsql set search_path from current as $$
    declare
      written bigint;
    begin
      execute $query$
        with unwritten as materialized (
          select p.id from prompts p
          where p.id in (select prompt_id from new_rows) and p.xmin <> pg_current_xact_id()::xid
          order by p.id for no key update
        )
        update prompts p set sort_order = p.sort_order from unwritten u where p.id = u.id
      $query$;
      get diagnostics written = row_count;
      if written > 0 then
        execute $query$
          update prompt_tags t set listed_at = null from new_rows n join prompts p on p.id = n.prompt_id
          where t.prompt_id = n.prompt_id and t.tag_id = n.tag_id and (t.workspace_id,t.listed_at,t.prompt_type,t.folder_id) is distinct from (p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id)
        $query$;
      end if;
      return null;
    end
  $$`,
  `create function confirm_listing() returns trigger language plpgsql set search_path from current as $$
    begin
      update prompts set sort_order = sort_order where id = new.prompt_id;
      update prompt_tags t set listed_at = null from prompts p
      where t.prompt_id = new.prompt_id and t.tag_id = new.tag_id and p.id = t.prompt_id and (t.workspace_id,t.listed_at,t.prompt_type,t.folder_id) is distinct from (p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id);
      return null;
    end
  $$`,
  "alter table prompt_tags disable trigger user",
  "alter table prompt_tags add column workspace_id uuid",
  "drop index prompt_tags_list",
  "update prompt_tags t set (workspace_id,listed_at,prompt_type,folder_id) = row(p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id) from prompts p where p.id = t.prompt_id",
  `create index prompt_tags_list on prompt_tags (tag_id, workspace_id, listed_at, prompt_id)
    include (prompt_type, folder_id)`,
  "alter table prompt_tags enable trigger user",
  `create trigger confirm_listings after insert on prompt_tags referencing new table as new_rows
    for each statement execute function confirm_listings()`,
  `create trigger confirm_listing after insert on prompt_tags
    for each row execute function confirm_listing()`,
  `create trigger confirm_listing_update after update on prompt_tags for each row
    when (old.prompt_id <> new.prompt_id) execute function confirm_listing()`,
  `create trigger renew_listings_insert after insert on prompts
    for each row execute function renew_listings()`,
  // A change of a user is notified to the workspaces of the user's keys, including a key that another transaction
  // adds at the same time. The foreign key of the added key locks the user's row until that transaction ends. If
  // the row is so locked, every workspace is notified, because revocation must not wait; if it is free, the lock
  // taken here makes the other transaction wait. A snapshot older than the keys, or a replica without foreign keys,
  // also notifies every workspace.
  "drop trigger notify_update on users",
  `create function notify_owner() returns trigger language plpgsql set search_path from current as $$
    begin
      if current_setting('transaction_isolation') = 'read committed'
        and current_setting('session_replication_role') <> 'replica' then
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
  // A key that keeps its owner has no foreign key to check, so a move to another workspace takes the lock here.
  `create function lock_owner() returns trigger language plpgsql set search_path from current as $$
    begin
      perform from users where id = new.created_by for key share;
      return null;
    end
  $$`,
  `create trigger lock_owner after update on api_keys for each row
    when (old.workspace_id is distinct from new.workspace_id) execute function lock_owner()`,
  // Triggers also run where rows arrive by logical replication or under `session_replication_role = replica`.
  // Logical replication runs row triggers but no statement triggers, so each table has a row trigger that runs on
  // replicas only. It covers the operations that no other row trigger covers, and gets a query for the workspaces
  // of one row, `$1`.
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
  `create trigger notify_row after insert or update or delete on workspaces
      for each row execute function notify_row('select ($1).id')`,
  "alter table workspaces enable replica trigger notify_row",
  `create trigger notify_row after insert or update or delete on folders
      for each row execute function notify_row('select ($1).workspace_id')`,
  "alter table folders enable replica trigger notify_row",
  `create trigger notify_row after insert or update or delete on tags
      for each row execute function notify_row('select ($1).workspace_id')`,
  "alter table tags enable replica trigger notify_row",
  `create trigger notify_row after insert or update or delete on fragments
      for each row execute function notify_row('select ($1).workspace_id')`,
  "alter table fragments enable replica trigger notify_row",
  `create trigger notify_row after insert or update or delete on prompts
      for each row execute function notify_row('select ($1).workspace_id')`,
  "alter table prompts enable replica trigger notify_row",
  `create trigger notify_row after insert or delete on prompt_tags
      for each row execute function notify_row('select p.workspace_id from prompts p where p.id = ($1).prompt_id')`,
  "alter table prompt_tags enable replica trigger notify_row",
  `create trigger notify_row after insert or update or delete on prompt_versions
      for each row execute function notify_row('select p.workspace_id from prompts p where p.id = ($1).prompt_id')`,
  "alter table prompt_versions enable replica trigger notify_row",
  `create trigger notify_row after insert or update or delete on prompt_fragments
      for each row execute function notify_row('select p.workspace_id from prompts p where p.id = ($1).prompt_id')`,
  "alter table prompt_fragments enable replica trigger notify_row",
  `create trigger notify_row after insert or delete on users
      for each row execute function notify_row('select k.workspace_id from api_keys k where k.created_by = ($1).id')`,
  "alter table users enable replica trigger notify_row",
  // An inserted prompt can have tag rows on a replica only.
  "alter table prompts enable replica trigger renew_listings_insert",
  "alter table prompt_tags enable replica trigger confirm_listing",
  "alter table prompt_tags enable always trigger set_listing",
  "alter table prompt_tags enable always trigger confirm_listing_update",
  "alter table prompt_tags enable always trigger notify_update",
  "alter table prompts enable always trigger renew_listings",
  "alter table users enable always trigger notify_owner",
  "alter table api_keys enable always trigger lock_owner",
  "alter table api_keys enable always trigger notify_key",
  "alter table api_keys enable always trigger notify_key_update",
  "alter table workspaces enable always trigger notify_truncate",
  "alter table folders enable always trigger notify_truncate",
  "alter table tags enable always trigger notify_truncate",
  "alter table fragments enable always trigger notify_truncate",
  "alter table prompts enable always trigger notify_truncate",
  "alter table prompt_tags enable always trigger notify_truncate",
  "alter table prompt_versions enable always trigger notify_truncate",
  "alter table prompt_fragments enable always trigger notify_truncate",
  "alter table users enable always trigger notify_truncate",
  "alter table api_keys enable always trigger notify_truncate",
  // Wrong rows of tag lists have been corrected, so every listener drops its caches.
  "select pg_notify('prompt_retrieval_changes', '*')"
]
