import { emptySlug, maxSlugLength, maxSlugSourceLength } from "../../../../../../domain/PromptName.ts"
import { sizes } from "../../../../../../domain/Sizes.ts"

const name = (column: string): string =>
  `${column} text not null default '' check (char_length(${column}) <= ${sizes.nameLength})`

const summary = (column: string): string =>
  `${column} text not null default '' check (octet_length(${column}) <= ${sizes.summaryBytes})`

/**
 * A column with the limits of contents. A text has at most as many slots as occurrences of `{{`. Counting these
 * occurrences is much faster than counting the slots, so slots are counted only if there are too many occurrences.
 */
const content = (column: string): string =>
  `${column} text not null default '' check (octet_length(${column}) <= ${sizes.contentBytes})
      check ((octet_length(${column}) - octet_length(replace(${column}, '{{', ''))) / 2 <= ${sizes.contentSlots}
        or count_slots(${column}) <= ${sizes.contentSlots})`

/**
 * A column with the limits of free-form JSON. The depth is limited, because PostgreSQL cannot write JSON with thousands
 * of nested levels.
 */
const json = (column: string): string =>
  `${column} jsonb not null default '{}' check (octet_length(${column}::text) <= ${sizes.jsonBytes})
      check (not jsonb_path_exists(${column}, 'strict $.**{${sizes.jsonLevels}} ? (@.type() == "object" || @.type() == "array")'))`

/** A column for a time, limited to the times that an archive can hold. */
const time = (column: string): string =>
  `${column} timestamptz(3) check (${column} >= '0001-01-01 00:00:00+00' and ${column} < '10000-01-01 00:00:00+00')`

const createdAt = `${time("created_at")} not null default now()`

const id = "id uuid primary key default gen_random_uuid()"
const workspaceId = "workspace_id uuid not null references workspaces on delete cascade"
const promptId = "prompt_id uuid not null references prompts on delete cascade"

/**
 * The tables and their indexes.
 *
 * `tier` is free text: an unknown tier is treated as Free. A constraint is deferrable if an import may violate it
 * before the import ends. Foreign keys do not compare workspaces, so a row may refer to a row of another workspace.
 * Every read leaves out such references.
 */
export const tables: ReadonlyArray<string> = [
  // `return` binds the names of functions and operators now, so the result does not depend on the caller's search_path.
  // A repetition count in PostgreSQL's regular expressions must not exceed 255.
  `create function count_slots(content text) returns bigint language sql immutable strict parallel safe
    return (select count(*) from regexp_matches(content, '\\{\\{[^{}]{1,255}[^{}]?\\}\\}', 'g'))`,
  // The slug of a title (`toSlug`). The lowercase letters do not depend on the collation of the database.
  `create function prompt_slug(title text) returns text language sql immutable strict parallel safe
    return coalesce(nullif(rtrim(left(ltrim(regexp_replace(replace(translate(
      regexp_replace(normalize(left(title, ${maxSlugSourceLength}), NFKD), '[\u0300-\u036f]', '', 'g'),
      'ABCDEFGHIJKLMNOPQRSTUVWXYZ', 'abcdefghijklmnopqrstuvwxyz'), 'ß', 'ss'),
      '[^a-z0-9_]+', '-', 'g'), '-'), ${maxSlugLength}), '-'), ''), '${emptySlug}')`,
  `create table workspaces (
    ${id},
    ${name("name")},
    tier text not null default 'free' check (char_length(tier) <= ${sizes.nameLength}),
    billing_status text not null default 'active'
      check (billing_status in ('active', 'past_due', 'over_limit', 'disputed'))
  )`,
  `create table users (
    ${id},
    email text not null check (email <> '' and char_length(email) <= ${sizes.nameLength}),
    must_reset_password boolean not null default false
  )`,
  "create unique index users_email on users (lower(email))",
  `create table api_keys (
    ${id},
    workspace_id uuid references workspaces on delete cascade,
    created_by uuid not null references users,
    ${name("name")},
    key_hash bytea not null unique check (octet_length(key_hash) = 32),
    key_start text not null default '0000' check (key_start ~ '^[0-9a-f]{4}$'),
    key_end text not null default '0000' check (key_end ~ '^[0-9a-f]{4}$'),
    ${createdAt},
    ${time("revoked_at")},
    ${time("expires_at")},
    ${time("last_used_at")}
  )`,
  "create index api_keys_workspace on api_keys (workspace_id)",
  "create index api_keys_owner on api_keys (created_by)",
  `create table folders (
    ${id},
    ${workspaceId},
    ${name("name")}
  )`,
  "create index folders_workspace on folders (workspace_id)",
  `create table tags (
    ${id},
    ${workspaceId},
    ${name("name")},
    color text not null default '#808080' check (color ~ '^#[0-9a-fA-F]{6}$'),
    unique (workspace_id, name) deferrable
  )`,
  `create table fragments (
    ${id},
    ${workspaceId},
    ${name("name")},
    ${content("content")}
  )`,
  "create index fragments_workspace on fragments (workspace_id)",
  `create table prompts (
    ${id},
    ${workspaceId},
    ${name("title")},
    slug text collate "C" not null generated always as (prompt_slug(title)) stored,
    ${summary("description")},
    ${content("current_content")},
    prompt_type text not null default 'user'
      check (prompt_type in ('system', 'user', 'assistant', 'template', 'few-shot', 'chain-of-thought')),
    ${name("target_model")},
    ${name("intent")},
    current_version integer not null default 1 check (current_version >= 0),
    folder_id uuid references folders on delete set null,
    is_favorite boolean not null default false,
    is_archived boolean not null default false,
    sort_order integer not null default 0,
    ${createdAt},
    ${time("updated_at")} not null default now()
  )`,
  // Indexes for the list of prompts, for the filters by type and by folder, and for all prompts of a workspace. To
  // count and skip rows, PostgreSQL reads only the index.
  "create index prompts_list on prompts (workspace_id, updated_at desc, id desc) where not is_archived",
  `create index prompts_type on prompts (workspace_id, prompt_type, updated_at desc, id desc)
    where not is_archived`,
  `create index prompts_folder on prompts (workspace_id, folder_id, updated_at desc, id desc)
    include (prompt_type) where not is_archived and folder_id is not null`,
  "create index prompts_workspace on prompts (workspace_id, id)",
  // For lookups by name: a slug alone, and a slug with digits of the id.
  "create index prompts_slug on prompts (workspace_id, slug, created_at, id) where not is_archived",
  "create index prompts_slug_id on prompts (workspace_id, slug, id) where not is_archived",
  // For the deletion of a folder, which sets `folder_id` of its prompts to null.
  "create index prompts_in_folder on prompts (folder_id) where folder_id is not null",
  `create table prompt_versions (
    ${id},
    ${promptId},
    version_number integer not null default 1 check (version_number > 0),
    ${content("content")},
    ${summary("change_summary")},
    ${name("change_source")},
    parent_version_id uuid references prompt_versions on delete set null deferrable,
    ${json("metadata")} check (jsonb_typeof(metadata) = 'object'),
    ${createdAt},
    unique (prompt_id, version_number) include (created_at) deferrable
  )`,
  `create index prompt_versions_parent on prompt_versions (parent_version_id)
    where parent_version_id is not null`,
  `create table prompt_fragments (
    ${id},
    ${promptId},
    fragment_id uuid not null references fragments on delete cascade,
    position integer not null default 0,
    ${json("variable_overrides")}
  )`,
  "create index prompt_fragments_prompt on prompt_fragments (prompt_id, position, id)",
  "create index prompt_fragments_fragment on prompt_fragments (fragment_id)",
  // `workspace_id`, `prompt_type` and `folder_id` are copies from the prompt. `listed_at` is the prompt's `updated_at`,
  // or null if the prompt is archived. With these columns, an index can have the order of a tag's list.
  `create table prompt_tags (
    ${promptId},
    tag_id uuid not null references tags on delete cascade,
    workspace_id uuid,
    listed_at timestamptz(3),
    prompt_type text,
    folder_id uuid,
    primary key (prompt_id, tag_id)
  )`,
  `create index prompt_tags_list on prompt_tags (tag_id, workspace_id, listed_at, prompt_id)
    include (prompt_type, folder_id)`,
  // `workspace_id` has no foreign key, because the events of a workspace remain after its deletion.
  `create table audit_events (
    id bigint generated always as identity primary key,
    at timestamptz(3) not null default now(),
    actor text not null,
    action text not null,
    workspace_id uuid,
    subject text not null,
    details jsonb not null default '{}'
  )`,
  "create index audit_events_workspace on audit_events (workspace_id, id)",
  // The states that the latest import of files gave to prompts and fragments, as SHA-256 hashes. No request reads the
  // table, so it has no trigger. A row remains when its prompt or fragment is deleted.
  `create table imported_states (
    ${workspaceId},
    kind text not null check (kind in ('prompt', 'fragment')),
    id uuid not null,
    hash bytea not null check (octet_length(hash) = 32),
    primary key (workspace_id, kind, id)
  )`
]
