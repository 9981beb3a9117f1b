import { sizes } from "../../../../../../domain/Sizes.ts"

const limits = { prompt_tags: sizes.promptTags, prompt_fragments: sizes.promptFragments }

/**
 * The triggers that limit the number of tags and fragments of a prompt. They check the limit after each statement, so a
 * transaction must delete rows before it adds other rows in their place. They lock the prompts, so that transactions
 * that add rows to the same prompt wait for each other.
 */
export const listSizes: ReadonlyArray<string> = [
  `create function limit_rows() returns trigger language plpgsql set search_path from current as $$
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
  $$`,
  ...Object.entries(limits).flatMap(([table, limit]) =>
    ["insert", "update"].map(
      (
        operation
      ) => `create trigger limit_${operation} after ${operation} on ${table} referencing new table as new_rows
        for each statement execute function limit_rows(${limit})`
    )
  )
]
