/**
 * Migration 1: the tables. Released, so this text never changes.
 *
 * `tier` is free text: an unknown tier is treated as Free. Constraints that one import may break and mend again are
 * deferrable. No foreign key ties a row to the workspace of the row it refers to: a join row may point at another
 * workspace's row, and every read leaves such rows out.
 */
export const statements: ReadonlyArray<string> = [
  `create table workspaces (
    id uuid primary key default gen_random_uuid(),
    name text not null default '' check (char_length(name) <= 256),
    tier text not null default 'free',
    billing_status text not null default 'active'
      check (billing_status in ('active', 'past_due', 'over_limit', 'disputed'))
  )`,
  `create table users (
    id uuid primary key default gen_random_uuid(),
    email text not null check (char_length(email) between 1 and 256),
    must_reset_password boolean not null default false
  )`,
  `create unique index users_email on users (lower(email))`,
  `create table api_keys (
    id uuid primary key default gen_random_uuid(),
    workspace_id uuid references workspaces on delete cascade,
    created_by uuid not null references users,
    name text not null default '' check (octet_length(name) <= 16777216),
    key_hash bytea not null unique check (octet_length(key_hash) = 32),
    key_start text not null default '0000' check (key_start ~ '^[0-9a-f]{4}$'),
    key_end text not null default '0000' check (key_end ~ '^[0-9a-f]{4}$'),
    created_at timestamptz(3) not null default now() check (created_at >= '0001-01-01 00:00:00+00' and created_at < '10000-01-01 00:00:00+00'),
    revoked_at timestamptz(3) check (revoked_at >= '0001-01-01 00:00:00+00' and revoked_at < '10000-01-01 00:00:00+00'),
    last_used_at timestamptz(3) check (last_used_at >= '0001-01-01 00:00:00+00' and last_used_at < '10000-01-01 00:00:00+00')
  )`,
  `create index api_keys_workspace on api_keys (workspace_id)`,
  `create index api_keys_owner on api_keys (created_by)`,
  `create table folders (
    id uuid primary key default gen_random_uuid(),
    workspace_id uuid not null references workspaces on delete cascade,
    name text not null default '' check (char_length(name) <= 256)
  )`,
  `create index folders_workspace on folders (workspace_id)`,
  `create table tags (
    id uuid primary key default gen_random_uuid(),
    workspace_id uuid not null references workspaces on delete cascade,
    name text not null default '' check (char_length(name) <= 256),
    color text not null default '#808080' check (color ~ '^#[0-9a-fA-F]{6}$'),
    unique (workspace_id, name) deferrable
  )`,
  `create table fragments (
    id uuid primary key default gen_random_uuid(),
    workspace_id uuid not null references workspaces on delete cascade,
    name text not null default '' check (char_length(name) <= 256),
    content text not null default '' check (octet_length(content) <= 16777216)
  )`,
  `create index fragments_workspace on fragments (workspace_id)`,
  `create table prompts (
    id uuid primary key default gen_random_uuid(),
    workspace_id uuid not null references workspaces on delete cascade,
    title text not null default '' check (octet_length(title) <= 16777216),
    description text not null default '' check (octet_length(description) <= 16777216),
    current_content text not null default '' check (octet_length(current_content) <= 16777216),
    prompt_type text not null default 'user'
      check (prompt_type in ('system', 'user', 'assistant', 'template', 'few-shot', 'chain-of-thought')),
    target_model text not null default '' check (octet_length(target_model) <= 16777216),
    intent text not null default '' check (octet_length(intent) <= 16777216),
    current_version integer not null default 1 check (current_version >= 0),
    folder_id uuid references folders on delete set null,
    is_favorite boolean not null default false,
    is_archived boolean not null default false,
    sort_order integer not null default 0,
    created_at timestamptz(3) not null default now() check (created_at >= '0001-01-01 00:00:00+00' and created_at < '10000-01-01 00:00:00+00'),
    updated_at timestamptz(3) not null default now() check (updated_at >= '0001-01-01 00:00:00+00' and updated_at < '10000-01-01 00:00:00+00')
  )`,
  // The list in its order, then one index for each filter, then all rows of a workspace. Counting and skipping read
  // only the index.
  `create index prompts_list on prompts (workspace_id, updated_at desc, id desc) where not is_archived`,
  `create index prompts_type on prompts (workspace_id, prompt_type, updated_at desc, id desc)
    where not is_archived`,
  `create index prompts_folder on prompts (workspace_id, folder_id, updated_at desc, id desc)
    include (prompt_type) where not is_archived and folder_id is not null`,
  `create index prompts_workspace on prompts (workspace_id, id)`,
  // For the deletion of a folder.
  `create index prompts_in_folder on prompts (folder_id) where folder_id is not null`,
  `create table prompt_tags (
    prompt_id uuid not null references prompts on delete cascade,
    tag_id uuid not null references tags on delete cascade,
    listed_at timestamptz(3),
    prompt_type text,
    folder_id uuid,
    primary key (prompt_id, tag_id)
  )`,
  `create index prompt_tags_list on prompt_tags (tag_id, listed_at, prompt_id) include (prompt_type, folder_id)`,
  // `prompt_tags` copies what a tag's list needs from the prompt, so that the list has an index in its order:
  // `listed_at` is the prompt's `updated_at`, or null where the tag does not list the prompt. `for share` waits for
  // a concurrent update of the prompt.
  `create function set_listing() returns trigger language plpgsql set search_path from current as $$
    begin
      select case when not p.is_archived and p.workspace_id = t.workspace_id then p.updated_at end,
        p.prompt_type, p.folder_id
      into new.listed_at, new.prompt_type, new.folder_id
      from prompts p, tags t where p.id = new.prompt_id and t.id = new.tag_id
      for share of p;
      return new;
    end
  $$`,
  `create trigger set_listing before insert or update on prompt_tags
    for each row execute function set_listing()`,
  `create function renew_listings() returns trigger language plpgsql set search_path from current as $$
    begin
      if tg_table_name = 'prompts' then
        update prompt_tags set listed_at = null where prompt_id = new.id;
      else
        update prompt_tags set listed_at = null where tag_id = new.id;
      end if;
      return null;
    end
  $$`,
  `create trigger renew_listings after update on prompts for each row
    when ((old.workspace_id, old.updated_at, old.is_archived, old.prompt_type, old.folder_id)
      is distinct from (new.workspace_id, new.updated_at, new.is_archived, new.prompt_type, new.folder_id))
    execute function renew_listings()`,
  `create trigger renew_listings after update on tags for each row
    when (old.workspace_id <> new.workspace_id) execute function renew_listings()`,
  `create table prompt_versions (
    id uuid primary key default gen_random_uuid(),
    prompt_id uuid not null references prompts on delete cascade,
    version_number integer not null default 1 check (version_number > 0),
    content text not null default '' check (octet_length(content) <= 16777216),
    change_summary text not null default '' check (octet_length(change_summary) <= 16777216),
    change_source text not null default '' check (octet_length(change_source) <= 16777216),
    parent_version_id uuid references prompt_versions on delete set null deferrable,
    metadata jsonb not null default '{}' check (octet_length(metadata::text) <= 16777216) check (jsonb_typeof(metadata) = 'object'),
    created_at timestamptz(3) not null default now() check (created_at >= '0001-01-01 00:00:00+00' and created_at < '10000-01-01 00:00:00+00'),
    unique (prompt_id, version_number) include (created_at) deferrable
  )`,
  `create index prompt_versions_parent on prompt_versions (parent_version_id)
    where parent_version_id is not null`,
  `create table prompt_fragments (
    id uuid primary key default gen_random_uuid(),
    prompt_id uuid not null references prompts on delete cascade,
    fragment_id uuid not null references fragments on delete cascade,
    position integer not null default 0,
    variable_overrides jsonb not null default '{}' check (octet_length(variable_overrides::text) <= 16777216)
  )`,
  `create index prompt_fragments_prompt on prompt_fragments (prompt_id, position, id)`,
  `create index prompt_fragments_fragment on prompt_fragments (fragment_id)`
]
