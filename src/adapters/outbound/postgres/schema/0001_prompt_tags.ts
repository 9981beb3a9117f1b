/**
 * Migration 1, part 2: triggers. Some triggers copy columns of a prompt to the prompt's rows in `prompt_tags`, so that
 * one index can serve the list of a tag. Other triggers limit the number of tags and fragments of a prompt. At every
 * isolation level, the copies equal the columns of the prompt.
 *
 * An update of a prompt updates only the tag rows that its transaction sees. The update misses the rows of open
 * transactions and, under REPEATABLE READ, rows that were committed after the snapshot. A transaction that adds a tag
 * row therefore also writes the prompt, unless the transaction has already written the prompt. The two transactions
 * then conflict, and one of them waits for the other. The waiting transaction either copies the current columns or
 * fails with a serialization failure.
 */
export const promptTags = `
create function set_listing() returns trigger language plpgsql set search_path from current as $$
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
  $$;
create trigger set_listing before insert or update on prompt_tags
  for each row execute function set_listing();

create function renew_listings() returns trigger language plpgsql set search_path from current as $$
    begin
      update prompt_tags set listed_at = null where prompt_id = new.id;
      return null;
    end
  $$;
create trigger renew_listings after update on prompts for each row
  when ((old.workspace_id, old.updated_at, old.is_archived, old.prompt_type, old.folder_id)
  is distinct from (new.workspace_id, new.updated_at, new.is_archived, new.prompt_type, new.folder_id))
  execute function renew_listings();
-- Runs only for rows that arrive by logical replication: a prompt may arrive after its tag rows.
create trigger renew_listings_insert after insert on prompts
  for each row execute function renew_listings();

-- Locks prompts in the order of their ids, so that two statements that add tag rows do not deadlock. \`execute\` keeps
-- plans from being cached, because the best plan depends on the number of rows.
create function confirm_listings() returns trigger language plpgsql set search_path from current as $$
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
          where t.prompt_id = n.prompt_id and t.tag_id = n.tag_id and (t.workspace_id, t.listed_at, t.prompt_type, t.folder_id) is distinct from
          (p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id)
        $query$;
      end if;
      return null;
    end
  $$;
create trigger confirm_listings after insert on prompt_tags referencing new table as new_rows
  for each statement execute function confirm_listings();

create function confirm_listing() returns trigger language plpgsql set search_path from current as $$
    begin
      update prompts set sort_order = sort_order where id = new.prompt_id;
      update prompt_tags t set listed_at = null from prompts p
      where t.prompt_id = new.prompt_id and t.tag_id = new.tag_id and p.id = t.prompt_id and (t.workspace_id, t.listed_at, t.prompt_type, t.folder_id) is distinct from
          (p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id);
      return null;
    end
  $$;
create trigger confirm_listing after insert on prompt_tags
  for each row execute function confirm_listing();
create trigger confirm_listing_update after update on prompt_tags for each row
  when (old.prompt_id <> new.prompt_id) execute function confirm_listing();

-- Limits the number of tags and fragments of a prompt. Checks the limit after each statement, so a transaction must
-- delete rows before it adds other rows in their place. Locks the prompts, so that transactions that add rows to the
-- same prompt wait for each other.
create function limit_rows() returns trigger language plpgsql set search_path from current as $$
    declare
      prompt uuid;
    begin
      execute 'select p.id from prompts p where p.id in (select prompt_id from new_rows)
        and p.xmin <> pg_current_xact_id()::xid order by p.id for no key update';
      execute format('select prompt_id from %I where prompt_id in (select prompt_id from new_rows)
        group by prompt_id having count(*) > %s limit 1', tg_table_name, tg_argv[0]) into prompt;
      if prompt is not null then
        raise check_violation using message = format('prompt %s has more than %s rows in %I', prompt, tg_argv[0], tg_table_name);
      end if;
      return null;
    end
  $$;
create trigger limit_insert after insert on prompt_tags referencing new table as new_rows
  for each statement execute function limit_rows(100);
create trigger limit_update after update on prompt_tags referencing new table as new_rows
  for each statement execute function limit_rows(100);
create trigger limit_insert after insert on prompt_fragments referencing new table as new_rows
  for each statement execute function limit_rows(100);
create trigger limit_update after update on prompt_fragments referencing new table as new_rows
  for each statement execute function limit_rows(100);

alter table prompt_tags enable always trigger set_listing, enable always trigger confirm_listing_update,
  enable replica trigger confirm_listing;
alter table prompts enable always trigger renew_listings, enable replica trigger renew_listings_insert;
`
