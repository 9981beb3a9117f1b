import { channel, allWorkspaces } from "../NotifyChannel.ts"

/**
 * Which workspaces the rows of a transition table, `%s`, belong to. What hangs below a prompt belongs to the prompt's
 * workspace: where the prompt goes with it, the prompt's own row tells.
 */
const ofPrompt = "select p.workspace_id from %s c join prompts p on p.id = c.prompt_id"
const workspacesOf: Readonly<Record<string, string>> = {
  workspaces: "select id from %s",
  folders: "select workspace_id from %s",
  tags: "select workspace_id from %s",
  fragments: "select workspace_id from %s",
  prompts: "select workspace_id from %s",
  prompt_tags: ofPrompt,
  prompt_versions: ofPrompt,
  prompt_fragments: ofPrompt,
  users: "select k.workspace_id from %s c join api_keys k on k.created_by = c.id"
}

/** One trigger a statement, however many rows it touches; an update tells of the rows' old places and new ones. */
const triggersOf = ([table, workspaces]: readonly [string, string]): ReadonlyArray<string> => {
  const trigger = (event: string, tables: string) =>
    `create trigger notify_${event} after ${event} on ${table} ${tables}
      for each statement execute function notify_changes('${workspaces}')`
  return [
    trigger("insert", "referencing new table as new_rows"),
    // Each edit of a prompt renews the listings of its tags, row by row: that the prompt's own row tells.
    ...(table === "prompt_tags"
      ? []
      : [trigger("update", "referencing old table as old_rows new table as new_rows")]),
    trigger("delete", "referencing old table as new_rows"),
    trigger("truncate", "")
  ]
}

/**
 * Tells `NOTIFY`'s listeners the id of every workspace that a reader may now see otherwise, once a transaction (DESIGN.md
 * section 7). That a key was used tells nobody.
 */
export const statements: ReadonlyArray<string> = [
  `create function notify_changes() returns trigger language plpgsql set search_path from current as $$
    declare
      workspace uuid;
      query text;
    begin
      if tg_op = 'TRUNCATE' then
        perform pg_notify('${channel}', '${allWorkspaces}');
        return null;
      end if;
      query := format(tg_argv[0], 'new_rows');
      if tg_op = 'UPDATE' then
        query := query || ' union ' || format(tg_argv[0], 'old_rows');
      end if;
      for workspace in execute 'select distinct * from (' || query || ') changed' loop
        if workspace is not null then
          perform pg_notify('${channel}', workspace::text);
        end if;
      end loop;
      return null;
    end
  $$`,
  ...Object.entries(workspacesOf).flatMap(triggersOf),
  `create function notify_tagging() returns trigger language plpgsql set search_path from current as $$
    begin
      perform pg_notify('${channel}', p.workspace_id::text)
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
        perform pg_notify('${channel}', old.workspace_id::text);
      end if;
      if tg_op <> 'DELETE' and new.workspace_id is not null then
        perform pg_notify('${channel}', new.workspace_id::text);
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
