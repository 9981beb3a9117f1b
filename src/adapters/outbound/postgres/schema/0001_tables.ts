/**
 * Migration 1, part 1: the tables and their indexes. The constraints enforce the limits of the domain. A constraint is
 * deferrable if an import can violate the constraint temporarily. Foreign keys do not compare workspaces, so a row can
 * refer to a row of another workspace. Every read omits such references.
 */
export const tables = `
-- \`return\` binds the names of functions and operators now, so the result does not depend on the caller's search_path.
-- A repetition count in a regular expression must not exceed 255.
create function count_slots(content text) returns bigint language sql immutable strict parallel safe
  return (select count(*) from regexp_matches(content, '\\{\\{[^{}]{1,255}[^{}]?\\}\\}', 'g'));

-- The slug of a title. The lowercase letters do not depend on the collation of the database.
create function prompt_slug(title text) returns text language sql immutable strict parallel safe
  return coalesce(nullif(rtrim(left(ltrim(regexp_replace(replace(translate(
    regexp_replace(normalize(left(title, 200), NFKD), '[\u0300-\u036f]', '', 'g'),
    'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), 'ß', 'ss'),
    '[^a-z0-9_]+', '-', 'g'), '-'), 64), '-'), ''), 'prompt');

-- \`tier\` is free text: an unknown tier is treated as Free.
create table workspaces (
  id uuid primary key default gen_random_uuid(),
  name text not null default '' check (char_length(name) <= 256),
  tier text not null default 'free' check (char_length(tier) <= 256),
  billing_status text not null default 'active'
    check (billing_status in ('active', 'past_due', 'over_limit', 'disputed'))
);

create table users (
  id uuid primary key default gen_random_uuid(),
  email text not null check (email <> '' and char_length(email) <= 256),
  must_reset_password boolean not null default false
);
create unique index users_email on users (lower(email));

create table api_keys (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid references workspaces on delete cascade,
  created_by uuid not null references users,
  name text not null default '' check (char_length(name) <= 256),
  key_hash bytea not null unique check (octet_length(key_hash) = 32),
  key_start text not null default '0000' check (key_start ~ '^[0-9a-f]{4}$'),
  key_end text not null default '0000' check (key_end ~ '^[0-9a-f]{4}$'),
  created_at timestamptz(3) not null default now()
    check (created_at >= '0001-01-01 00:00:00+00' and created_at < '10000-01-01 00:00:00+00'),
  revoked_at timestamptz(3)
    check (revoked_at >= '0001-01-01 00:00:00+00' and revoked_at < '10000-01-01 00:00:00+00'),
  expires_at timestamptz(3)
    check (expires_at >= '0001-01-01 00:00:00+00' and expires_at < '10000-01-01 00:00:00+00'),
  last_used_at timestamptz(3)
    check (last_used_at >= '0001-01-01 00:00:00+00' and last_used_at < '10000-01-01 00:00:00+00')
);
create index api_keys_workspace on api_keys (workspace_id);
create index api_keys_owner on api_keys (created_by);

create table folders (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces on delete cascade,
  name text not null default '' check (char_length(name) <= 256)
);
create index folders_workspace on folders (workspace_id);

create table tags (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces on delete cascade,
  name text not null default '' check (char_length(name) <= 256),
  color text not null default '#808080' check (color ~ '^#[0-9a-fA-F]{6}$'),
  unique (workspace_id, name) deferrable
);

-- Contents have at most as many slots as occurrences of \`{{\`. Counting these occurrences is much faster than counting
-- the slots, so slots are counted only if there are too many occurrences.
create table fragments (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces on delete cascade,
  name text not null default '' check (char_length(name) <= 256),
  content text not null default '' check (octet_length(content) <= 1048576)
    check ((octet_length(content) - octet_length(replace(content, '{{', ''))) / 2 <= 10000
      or count_slots(content) <= 10000)
);
create index fragments_workspace on fragments (workspace_id);

create table prompts (
  id uuid primary key default gen_random_uuid(),
  workspace_id uuid not null references workspaces on delete cascade,
  title text not null default '' check (char_length(title) <= 256),
  slug text collate "C" not null generated always as (prompt_slug(title)) stored,
  description text not null default '' check (octet_length(description) <= 16384),
  current_content text not null default '' check (octet_length(current_content) <= 1048576)
    check ((octet_length(current_content) - octet_length(replace(current_content, '{{', ''))) / 2 <= 10000
      or count_slots(current_content) <= 10000),
  prompt_type text not null default 'user'
    check (prompt_type in ('system', 'user', 'assistant', 'template', 'few-shot', 'chain-of-thought')),
  target_model text not null default '' check (char_length(target_model) <= 256),
  intent text not null default '' check (char_length(intent) <= 256),
  current_version integer not null default 1 check (current_version >= 0),
  folder_id uuid references folders on delete set null,
  is_favorite boolean not null default false,
  is_archived boolean not null default false,
  sort_order integer not null default 0,
  created_at timestamptz(3) not null default now()
    check (created_at >= '0001-01-01 00:00:00+00' and created_at < '10000-01-01 00:00:00+00'),
  updated_at timestamptz(3) not null default now()
    check (updated_at >= '0001-01-01 00:00:00+00' and updated_at < '10000-01-01 00:00:00+00')
);
-- For the list of prompts, the filters by type and by folder, and all prompts of a workspace. To count and skip rows,
-- PostgreSQL reads only the index.
create index prompts_list on prompts (workspace_id, updated_at desc, id desc) where not is_archived;
create index prompts_type on prompts (workspace_id, prompt_type, updated_at desc, id desc)
  where not is_archived;
create index prompts_folder on prompts (workspace_id, folder_id, updated_at desc, id desc)
  include (prompt_type) where not is_archived and folder_id is not null;
create index prompts_workspace on prompts (workspace_id, id);
-- For lookups by name: a slug alone, and a slug with digits of the id.
create index prompts_slug on prompts (workspace_id, slug, created_at, id) where not is_archived;
create index prompts_slug_id on prompts (workspace_id, slug, id) where not is_archived;
-- For the deletion of a folder.
create index prompts_in_folder on prompts (folder_id) where folder_id is not null;

-- The depth of free-form JSON is limited, because PostgreSQL cannot write JSON with thousands of nested levels.
create table prompt_versions (
  id uuid primary key default gen_random_uuid(),
  prompt_id uuid not null references prompts on delete cascade,
  version_number integer not null default 1 check (version_number > 0),
  content text not null default '' check (octet_length(content) <= 1048576)
    check ((octet_length(content) - octet_length(replace(content, '{{', ''))) / 2 <= 10000
      or count_slots(content) <= 10000),
  change_summary text not null default '' check (octet_length(change_summary) <= 16384),
  change_source text not null default '' check (char_length(change_source) <= 256),
  parent_version_id uuid references prompt_versions on delete set null deferrable,
  metadata jsonb not null default '{}' check (octet_length(metadata::text) <= 65536)
    check (not jsonb_path_exists(metadata, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")'))
    check (jsonb_typeof(metadata) = 'object'),
  created_at timestamptz(3) not null default now()
    check (created_at >= '0001-01-01 00:00:00+00' and created_at < '10000-01-01 00:00:00+00'),
  unique (prompt_id, version_number) include (created_at) deferrable
);
create index prompt_versions_parent on prompt_versions (parent_version_id)
  where parent_version_id is not null;

create table prompt_fragments (
  id uuid primary key default gen_random_uuid(),
  prompt_id uuid not null references prompts on delete cascade,
  fragment_id uuid not null references fragments on delete cascade,
  position integer not null default 0,
  variable_overrides jsonb not null default '{}' check (octet_length(variable_overrides::text) <= 65536)
    check (not jsonb_path_exists(variable_overrides, 'strict $.**{100} ? (@.type() == "object" || @.type() == "array")'))
);
create index prompt_fragments_prompt on prompt_fragments (prompt_id, position, id);
create index prompt_fragments_fragment on prompt_fragments (fragment_id);

-- \`workspace_id\`, \`prompt_type\` and \`folder_id\` are copies from the prompt. \`listed_at\` is the prompt's \`updated_at\`, or
-- null if the prompt is archived. With these columns, an index can have the order of a tag's list.
create table prompt_tags (
  prompt_id uuid not null references prompts on delete cascade,
  tag_id uuid not null references tags on delete cascade,
  workspace_id uuid,
  listed_at timestamptz(3),
  prompt_type text,
  folder_id uuid,
  primary key (prompt_id, tag_id)
);
create index prompt_tags_list on prompt_tags (tag_id, workspace_id, listed_at, prompt_id)
  include (prompt_type, folder_id);

-- \`workspace_id\` has no foreign key, because the events of a workspace remain after its deletion.
create table audit_events (
  id bigint generated always as identity primary key,
  at timestamptz(3) not null default now(),
  actor text not null,
  action text not null,
  workspace_id uuid,
  subject text not null,
  details jsonb not null default '{}'
);
create index audit_events_workspace on audit_events (workspace_id, id);

-- The states that the latest import of files gave to prompts and fragments, as SHA-256 hashes. No request reads the
-- table, so it has no trigger. A row remains when its prompt or fragment is deleted.
create table imported_states (
  workspace_id uuid not null references workspaces on delete cascade,
  kind text not null check (kind in ('prompt', 'fragment')),
  id uuid not null,
  hash bytea not null check (octet_length(hash) = 32),
  primary key (workspace_id, kind, id)
);
`
