import type { Statement } from "../driver/Query.ts"

/** The channel on which the triggers report changes. The payload is the id of a workspace, or `allWorkspaces`. */
export const channel = "prompt_retrieval_changes"

/** The payload that reports that all workspaces may have changed. */
export const allWorkspaces = "*"

/**
 * Returns the mode (`pg_trigger.tgenabled`) that each trigger has after migrations. A key consists of a table and a
 * trigger, such as `prompts.notify_row`.
 */
export const findTriggerModes = (statements: ReadonlyArray<string>): ReadonlyMap<string, string> => {
  const modes = new Map<string, string>()
  for (const statement of statements) {
    const [, change, name, table] = /^(create|drop) trigger (\w+) [^(]*?\bon (\w+)/m.exec(statement) ?? []
    if (change === "create") modes.set(`${table}.${name}`, "O")
    if (change === "drop") modes.delete(`${table}.${name}`)
    const [, altered] = /^alter table (\w+)/m.exec(statement) ?? []
    for (const [, mode, name] of statement.matchAll(/ enable (always|replica) trigger (\w+)/g))
      modes.set(`${altered}.${name}`, mode === "always" ? "A" : "R")
  }
  return modes
}

/** Selects the triggers that are missing or have the wrong mode. */
export const selectWrongTriggers = (modes: ReadonlyMap<string, string>): Statement => ({
  text: `select e.key from json_each_text($1) e left join pg_trigger t
    on t.tgrelid = to_regclass(split_part(e.key, '.', 1)) and t.tgname = split_part(e.key, '.', 2)
    where t.tgenabled::text is distinct from e.value`,
  params: [JSON.stringify(Object.fromEntries(modes))]
})

/**
 * Returns the statements that restore the definition and the mode of every trigger of the migrations. The statements
 * then do the work that the triggers may have missed: they correct the copied prompt columns in `prompt_tags`, and
 * notify that every workspace may have changed.
 */
export const makeTriggerRepair = (statements: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...statements
    .filter((statement) => /^(create|drop) trigger |^alter table .* enable (always|replica)/m.test(statement))
    .map((statement) => statement.replace(/^create trigger/m, "create or replace trigger")),
  `update prompt_tags t set listed_at = null from prompts p where p.id = t.prompt_id
    and (t.workspace_id, t.listed_at, t.prompt_type, t.folder_id) is distinct from
      (p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id)`,
  `select pg_notify('${channel}', '${allWorkspaces}')`
]
