/**
 * Migration 2: the change notifications. Released, so this text never changes.
 *
 * Every write that a reader could notice sends `NOTIFY prompt_retrieval_changes` with the id of each workspace
 * concerned, once per transaction, or `*` when a table is truncated. The statement-level triggers pass
 * `notify_changes` a query that maps the changed rows (`%s`) to workspaces. A change of `last_used_at` alone sends
 * nothing.
 */
export const statements: ReadonlyArray<string> = [
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
  `create trigger notify_insert after insert on workspaces referencing new table as new_rows
      for each statement execute function notify_changes('select id from %s')`,
  `create trigger notify_update after update on workspaces referencing old table as old_rows new table as new_rows
      for each statement execute function notify_changes('select id from %s')`,
  `create trigger notify_delete after delete on workspaces referencing old table as new_rows
      for each statement execute function notify_changes('select id from %s')`,
  `create trigger notify_truncate after truncate on workspaces
      for each statement execute function notify_changes('select id from %s')`,
  `create trigger notify_insert after insert on folders referencing new table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_update after update on folders referencing old table as old_rows new table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_delete after delete on folders referencing old table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_truncate after truncate on folders
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_insert after insert on tags referencing new table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_update after update on tags referencing old table as old_rows new table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_delete after delete on tags referencing old table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_truncate after truncate on tags
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_insert after insert on fragments referencing new table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_update after update on fragments referencing old table as old_rows new table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_delete after delete on fragments referencing old table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_truncate after truncate on fragments
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_insert after insert on prompts referencing new table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_update after update on prompts referencing old table as old_rows new table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_delete after delete on prompts referencing old table as new_rows
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_truncate after truncate on prompts
      for each statement execute function notify_changes('select workspace_id from %s')`,
  `create trigger notify_insert after insert on prompt_tags referencing new table as new_rows
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_delete after delete on prompt_tags referencing old table as new_rows
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_truncate after truncate on prompt_tags
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_insert after insert on prompt_versions referencing new table as new_rows
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_update after update on prompt_versions referencing old table as old_rows new table as new_rows
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_delete after delete on prompt_versions referencing old table as new_rows
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_truncate after truncate on prompt_versions
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_insert after insert on prompt_fragments referencing new table as new_rows
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_update after update on prompt_fragments referencing old table as old_rows new table as new_rows
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_delete after delete on prompt_fragments referencing old table as new_rows
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_truncate after truncate on prompt_fragments
      for each statement execute function notify_changes('select p.workspace_id from %s c join prompts p on p.id = c.prompt_id')`,
  `create trigger notify_insert after insert on users referencing new table as new_rows
      for each statement execute function notify_changes('select k.workspace_id from %s c join api_keys k on k.created_by = c.id')`,
  `create trigger notify_update after update on users referencing old table as old_rows new table as new_rows
      for each statement execute function notify_changes('select k.workspace_id from %s c join api_keys k on k.created_by = c.id')`,
  `create trigger notify_delete after delete on users referencing old table as new_rows
      for each statement execute function notify_changes('select k.workspace_id from %s c join api_keys k on k.created_by = c.id')`,
  `create trigger notify_truncate after truncate on users
      for each statement execute function notify_changes('select k.workspace_id from %s c join api_keys k on k.created_by = c.id')`,
  // Editing a prompt also updates its `prompt_tags` rows; the trigger on `prompts` already notifies for that edit.
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
    when ((old.id, old.workspace_id, old.created_by, old.key_hash, old.revoked_at)
      is distinct from (new.id, new.workspace_id, new.created_by, new.key_hash, new.revoked_at))
    execute function notify_key()`,
  `create trigger notify_truncate after truncate on api_keys
    for each statement execute function notify_changes('')`
]
