/**
 * Makes a query that returns the workspaces of prompts, and locks the prompts, so that no other transaction can move them
 * to another workspace before this transaction ends. Only moves and deletions of a prompt conflict with this lock
 * (`lock_moving`). The query does not wait for a transaction that moves a prompt, but returns null for the prompt. A
 * prompt that this transaction has written is already locked.
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

const workspacesOfRows = makeWorkspaceQuery("select c.prompt_id from %1$s c")
const workspacesOfRow = makeWorkspaceQuery("select ($1).prompt_id")

/** Migration 1, part 4: the change notifications of the tables whose rows belong to a prompt. */
export const promptNotifications = `
create trigger notify_insert after insert on prompt_tags referencing new table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_delete after delete on prompt_tags referencing old table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_truncate after truncate on prompt_tags
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_row after insert or delete on prompt_tags
  for each row execute function notify_row('${workspacesOfRow}');
-- Notifies only if a row gets another prompt or another tag. Editing a prompt also updates its \`prompt_tags\` rows, but
-- the trigger on \`prompts\` already notifies of that edit.
create trigger notify_update after update on prompt_tags for each row
  when ((old.prompt_id, old.tag_id) is distinct from (new.prompt_id, new.tag_id))
  execute function notify_row('${workspacesOfRow}');
alter table prompt_tags enable always trigger notify_truncate, enable replica trigger notify_row,
  enable always trigger notify_update;

create trigger notify_insert after insert on prompt_versions referencing new table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_update after update on prompt_versions referencing old table as old_rows new table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_delete after delete on prompt_versions referencing old table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_truncate after truncate on prompt_versions
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_row after insert or update or delete on prompt_versions
  for each row execute function notify_row('${workspacesOfRow}');
alter table prompt_versions enable always trigger notify_truncate, enable replica trigger notify_row;

create trigger notify_insert after insert on prompt_fragments referencing new table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_update after update on prompt_fragments referencing old table as old_rows new table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_delete after delete on prompt_fragments referencing old table as new_rows
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_truncate after truncate on prompt_fragments
  for each statement execute function notify_changes('${workspacesOfRows}');
create trigger notify_row after insert or update or delete on prompt_fragments
  for each row execute function notify_row('${workspacesOfRow}');
alter table prompt_fragments enable always trigger notify_truncate, enable replica trigger notify_row;
`
