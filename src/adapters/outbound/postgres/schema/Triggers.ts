import * as Schema from "effect/Schema"
import { makeRowDecoder } from "../driver/RowDecoder.ts"
import { allWorkspaces, channel } from "../feed/NotifyChannel.ts"

const content = [
  "workspaces",
  "folders",
  "tags",
  "fragments",
  "prompts",
  "prompt_versions",
  "prompt_fragments"
]
const allButKeys = [...content, "prompt_tags", "users"]

/**
 * The triggers of the schema with their tables, grouped by firing mode. A firing mode is an option of `ALTER TABLE …
 * ENABLE TRIGGER` that decides in which sessions a trigger runs.
 */
const triggers: Readonly<Record<string, Readonly<Record<string, ReadonlyArray<string>>>>> = {
  // These triggers run in every session.
  ALWAYS: {
    notify_truncate: [...allButKeys, "api_keys"],
    notify_update: ["prompt_tags"],
    set_listing: ["prompt_tags"],
    confirm_listing_update: ["prompt_tags"],
    renew_listings: ["prompts"],
    lock_moving: ["prompts"],
    notify_owner: ["users"],
    notify_key: ["api_keys"],
    notify_key_update: ["api_keys"]
  },
  // These triggers run only for rows that arrive by logical replication, and in sessions with `session_replication_role
  // = replica`.
  REPLICA: {
    notify_row: allButKeys,
    confirm_listing: ["prompt_tags"],
    renew_listings_insert: ["prompts"]
  },
  // These triggers have the default mode: they run in sessions whose `session_replication_role` is origin or local.
  "": {
    notify_insert: allButKeys,
    notify_update: content,
    notify_delete: allButKeys,
    confirm_listings: ["prompt_tags"],
    limit_insert: ["prompt_tags", "prompt_fragments"],
    limit_update: ["prompt_tags", "prompt_fragments"]
  }
}

export const expectedTriggers = Object.entries(triggers).flatMap(([option, tables]) =>
  Object.entries(tables).flatMap(([trigger, tables]) => tables.map((table) => ({ table, trigger, option })))
)

/** Selects the triggers of `expectedTriggers` that are missing or have another firing mode. */
export const selectWrongTriggers = {
  text: `select e."table", e.trigger, e.option, t.oid is null as "isMissing"
    from json_to_recordset($1) e ("table" text, trigger text, option text)
    left join pg_trigger t on t.tgrelid = to_regclass(e."table") and t.tgname = e.trigger
    where t.tgenabled::text is distinct from coalesce(nullif(left(e.option, 1), ''), 'O')`,
  params: [JSON.stringify(expectedTriggers)]
}

export const decodeTriggers = makeRowDecoder(
  Schema.Struct({
    table: Schema.String,
    trigger: Schema.String,
    option: Schema.String,
    isMissing: Schema.Boolean
  })
)

interface Trigger {
  readonly table: string
  readonly trigger: string
  readonly option: string
}

/** Returns true if a statement creates the trigger. */
export const createsTrigger = (statement: string, { table, trigger }: Trigger): boolean =>
  new RegExp(`^create trigger ${trigger} [^(]* on ${table}\\b`).test(statement)

export const enableTrigger = ({ table, trigger, option }: Trigger): string =>
  `alter table ${table} enable ${option} trigger ${trigger}`

/**
 * The statements that do the work which triggers may have missed. These statements correct the copies of prompt columns
 * in `prompt_tags`, and notify listeners that every workspace may have changed.
 */
export const repairStatements: ReadonlyArray<string> = [
  `update prompt_tags t set listed_at = null from prompts p where p.id = t.prompt_id
    and (t.workspace_id, t.listed_at, t.prompt_type, t.folder_id) is distinct from
      (p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id)`,
  `select pg_notify('${channel}', '${allWorkspaces}')`
]
