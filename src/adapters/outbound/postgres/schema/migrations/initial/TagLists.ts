/**
 * A condition that is true if the copied columns of a row `t` of `prompt_tags` differ from the columns of its prompt
 * `p`.
 */
const isOutdated = `(t.workspace_id, t.listed_at, t.prompt_type, t.folder_id) is distinct from
          (p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id)`

/**
 * The triggers that copy columns of a prompt to the prompt's rows in `prompt_tags`, for the list of a tag. `listed_at`
 * is the prompt's `updated_at`, or null if the prompt is archived. The copies equal the columns of the prompt at every
 * isolation level.
 *
 * An update of a prompt updates only the tag rows that its transaction sees: not the rows of another open transaction
 * and, under REPEATABLE READ, not the rows that were committed after its snapshot. A transaction that adds a tag row
 * therefore also writes the prompt, unless it has already written the prompt. One of the two transactions then waits
 * for the other, and either copies the current columns or fails with a serialization failure.
 */
export const tagLists: ReadonlyArray<string> = [
  `create function set_listing() returns trigger language plpgsql set search_path from current as $$
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
  `create trigger set_listing before insert or update on prompt_tags
    for each row execute function set_listing()`,
  `create function renew_listings() returns trigger language plpgsql set search_path from current as $$
    begin
      update prompt_tags set listed_at = null where prompt_id = new.id;
      return null;
    end
  $$`,
  `create trigger renew_listings after update on prompts for each row
    when ((old.workspace_id, old.updated_at, old.is_archived, old.prompt_type, old.folder_id)
      is distinct from (new.workspace_id, new.updated_at, new.is_archived, new.prompt_type, new.folder_id))
    execute function renew_listings()`,
  // Runs only for rows that arrive by logical replication: a prompt may arrive after its tag rows.
  `create trigger renew_listings_insert after insert on prompts
    for each row execute function renew_listings()`,
  // Prompts are locked in the order of their ids, so that two statements that add tag rows do not deadlock. `execute`
  // keeps plans from being cached, because the best plan depends on the number of rows.
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
          where t.prompt_id = n.prompt_id and t.tag_id = n.tag_id and ${isOutdated}
        $query$;
      end if;
      return null;
    end
  $$`,
  `create trigger confirm_listings after insert on prompt_tags referencing new table as new_rows
    for each statement execute function confirm_listings()`,
  `create function confirm_listing() returns trigger language plpgsql set search_path from current as $$
    begin
      update prompts set sort_order = sort_order where id = new.prompt_id;
      update prompt_tags t set listed_at = null from prompts p
      where t.prompt_id = new.prompt_id and t.tag_id = new.tag_id and p.id = t.prompt_id and ${isOutdated};
      return null;
    end
  $$`,
  `create trigger confirm_listing after insert on prompt_tags
    for each row execute function confirm_listing()`,
  `create trigger confirm_listing_update after update on prompt_tags for each row
    when (old.prompt_id <> new.prompt_id) execute function confirm_listing()`
]
