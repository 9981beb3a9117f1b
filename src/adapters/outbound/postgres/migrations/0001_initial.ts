const maxBytes = 16 * 1024 * 1024

/** A name is at most 256 code points, and may be empty; a text is as large as an archive allows. */
const name = `name text not null default '' check (char_length(name) <= 256)`
const text = (column: string) =>
  `${column} text not null default '' check (octet_length(${column}) <= ${maxBytes})`
const json = (column: string) =>
  `${column} jsonb not null default '{}' check (octet_length(${column}::text) <= ${maxBytes})`
/** Finite, and with a year of four digits. */
const inYears = (column: string) =>
  `check (${column} >= '0001-01-01 00:00:00+00' and ${column} < '10000-01-01 00:00:00+00')`
const time = (column: string) => `${column} timestamptz(3) not null default now() ${inYears(column)}`
const timeOrNull = (column: string) => `${column} timestamptz(3) ${inYears(column)}`
const id = "id uuid primary key default gen_random_uuid()"
const ownWorkspace = "workspace_id uuid not null references workspaces on delete cascade"

/**
 * The tables of DESIGN.md section 6. A tier is any text: an unknown one is treated as Free. What a single import may
 * swap or point forward to is deferrable. No key ties a row to the workspace of what it refers to: a join row may
 * point at another workspace's, and every read leaves that out.
 */
export const statements: ReadonlyArray<string> = [
  `create table workspaces (
    ${id},
    ${name},
    tier text not null default 'free',
    billing_status text not null default 'active'
      check (billing_status in ('active', 'past_due', 'over_limit', 'disputed'))
  )`,
  `create table users (
    ${id},
    email text not null check (char_length(email) between 1 and 256),
    must_reset_password boolean not null default false
  )`,
  "create unique index users_email on users (lower(email))",
  `create table api_keys (
    ${id},
    workspace_id uuid references workspaces on delete cascade,
    created_by uuid not null references users,
    ${text("name")},
    key_hash bytea not null unique check (octet_length(key_hash) = 32),
    key_start text not null default '0000' check (key_start ~ '^[0-9a-f]{4}$'),
    key_end text not null default '0000' check (key_end ~ '^[0-9a-f]{4}$'),
    ${time("created_at")},
    ${timeOrNull("revoked_at")},
    ${timeOrNull("last_used_at")}
  )`,
  "create index api_keys_workspace on api_keys (workspace_id)",
  "create index api_keys_owner on api_keys (created_by)",
  `create table folders (
    ${id},
    ${ownWorkspace},
    ${name}
  )`,
  "create index folders_workspace on folders (workspace_id)",
  `create table tags (
    ${id},
    ${ownWorkspace},
    ${name},
    color text not null default '#808080' check (color ~ '^#[0-9a-fA-F]{6}$'),
    unique (workspace_id, name) deferrable
  )`,
  `create table fragments (
    ${id},
    ${ownWorkspace},
    ${name},
    ${text("content")}
  )`,
  "create index fragments_workspace on fragments (workspace_id)",
  `create table prompts (
    ${id},
    ${ownWorkspace},
    ${text("title")},
    ${text("description")},
    ${text("current_content")},
    prompt_type text not null default 'user'
      check (prompt_type in ('system', 'user', 'assistant', 'template', 'few-shot', 'chain-of-thought')),
    ${text("target_model")},
    ${text("intent")},
    current_version integer not null default 1 check (current_version >= 0),
    folder_id uuid references folders on delete set null,
    is_favorite boolean not null default false,
    is_archived boolean not null default false,
    sort_order integer not null default 0,
    ${time("created_at")},
    ${time("updated_at")}
  )`,
  // The list in its order, then its filters, then the rows of a workspace. To count and to skip, lists read nothing else.
  `create index prompts_list on prompts (workspace_id, updated_at desc, id desc) where not is_archived`,
  `create index prompts_type on prompts (workspace_id, prompt_type, updated_at desc, id desc)
    where not is_archived`,
  `create index prompts_folder on prompts (workspace_id, folder_id, updated_at desc, id desc)
    include (prompt_type) where not is_archived and folder_id is not null`,
  "create index prompts_workspace on prompts (workspace_id, id)",
  // For the deletion of a folder.
  "create index prompts_in_folder on prompts (folder_id) where folder_id is not null",
  `create table prompt_tags (
    prompt_id uuid not null references prompts on delete cascade,
    tag_id uuid not null references tags on delete cascade,
    listed_at timestamptz(3),
    prompt_type text,
    folder_id uuid,
    primary key (prompt_id, tag_id)
  )`,
  "create index prompt_tags_list on prompt_tags (tag_id, listed_at, prompt_id) include (prompt_type, folder_id)",
  // So that a tag's list has an index in its order too, a tag's row holds what the list needs of the prompt:
  // `listed_at` is when that was updated, or null where the tag does not list it. The lock waits for an update of
  // the prompt that is under way.
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
    ${id},
    prompt_id uuid not null references prompts on delete cascade,
    version_number integer not null default 1 check (version_number > 0),
    ${text("content")},
    ${text("change_summary")},
    ${text("change_source")},
    parent_version_id uuid references prompt_versions on delete set null deferrable,
    ${json("metadata")} check (jsonb_typeof(metadata) = 'object'),
    ${time("created_at")},
    unique (prompt_id, version_number) include (created_at) deferrable
  )`,
  `create index prompt_versions_parent on prompt_versions (parent_version_id)
    where parent_version_id is not null`,
  `create table prompt_fragments (
    ${id},
    prompt_id uuid not null references prompts on delete cascade,
    fragment_id uuid not null references fragments on delete cascade,
    position integer not null default 0,
    ${json("variable_overrides")}
  )`,
  "create index prompt_fragments_prompt on prompt_fragments (prompt_id, position, id)",
  "create index prompt_fragments_fragment on prompt_fragments (fragment_id)"
]
