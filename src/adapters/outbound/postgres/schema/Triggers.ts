import * as Schema from "effect/Schema"
import type { Statement } from "../driver/Query.ts"
import { makeRowDecoder } from "../driver/RowDecoder.ts"
import { allWorkspaces, channel } from "../feed/PostgresChangeFeed.ts"

const Trigger = Schema.Struct({
  table: Schema.String,
  name: Schema.String,
  /** The sessions in which the trigger runs, as in `ALTER TABLE … ENABLE … TRIGGER`; empty for the default. */
  mode: Schema.Literals(["", "always", "replica"]),
  /** The statement that creates the trigger. */
  creation: Schema.String
})
type Trigger = typeof Trigger.Type

/** Returns the triggers that exist after the statements of migrations have run. */
export const findTriggers = (statements: ReadonlyArray<string>): ReadonlyArray<Trigger> => {
  const triggers = new Map<string, Trigger>()
  for (const statement of statements) {
    const [, created, on] = /^create trigger (\w+) [^(]*? on (\w+)/m.exec(statement) ?? []
    if (created !== undefined && on !== undefined)
      triggers.set(`${on}.${created}`, { table: on, name: created, mode: "", creation: statement })
    const [, dropped, from] = /^drop trigger (\w+) on (\w+)/m.exec(statement) ?? []
    triggers.delete(`${from}.${dropped}`)
    const [, altered] = /^alter table (\w+)/m.exec(statement) ?? []
    for (const [, mode, name] of statement.matchAll(/ enable (always|replica) trigger (\w+)/g)) {
      const trigger = triggers.get(`${altered}.${name}`)
      if (trigger !== undefined)
        triggers.set(`${altered}.${name}`, { ...trigger, mode: mode as Trigger["mode"] })
    }
  }
  return [...triggers.values()]
}

const WrongTrigger = Schema.Struct({ ...Trigger.fields, isMissing: Schema.Boolean })

/** Selects the triggers that are missing or run in other sessions than they should. */
export const selectWrongTriggers = (triggers: ReadonlyArray<Trigger>): Statement => ({
  text: `select e.*, t.oid is null as "isMissing"
    from json_to_recordset($1) e ("table" text, name text, mode text, creation text)
    left join pg_trigger t on t.tgrelid = to_regclass(e."table") and t.tgname = e.name
    where t.tgenabled::text is distinct from coalesce(nullif(upper(left(e.mode, 1)), ''), 'O')`,
  params: [JSON.stringify(triggers)]
})

export const decodeWrongTriggers = makeRowDecoder(WrongTrigger)

/** Makes the statements that give a trigger its definition and its mode. */
export const makeCorrection = ({ table, name, mode, creation, isMissing }: typeof WrongTrigger.Type) => [
  ...(isMissing ? [creation] : []),
  `alter table ${table} enable ${mode} trigger ${name}`
]

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
