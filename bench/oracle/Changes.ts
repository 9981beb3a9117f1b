import { randomBytes, randomUUID } from "node:crypto"
import type { PgClient } from "@effect/sql-pg/PgClient"
import type { Statement } from "effect/sql/Statement"
import { hashApiKey, makeApiKey, toKeyEnds } from "../../src/domain/ApiKey.ts"
import type { Random } from "./Random.ts"

/** The ids of the rows that a history changes. */
export type World = ReturnType<typeof makeWorld>

const makeIds = (count: number): ReadonlyArray<string> => Array.from({ length: count }, () => randomUUID())

/** Returns new ids for a world. */
export const makeWorld = () => ({
  workspaces: makeIds(3),
  users: makeIds(2),
  keys: makeIds(6).map((id) => ({ id, plaintext: makeApiKey(randomBytes(32)) })),
  prompts: makeIds(12),
  fragments: makeIds(6)
})

/** A change to a world: its name and the statements of one transaction. */
export interface Change {
  readonly name: string
  readonly statements: ReadonlyArray<Statement<unknown>>
}

/** Makes the changes to a world. A change writes its marker, which no other change uses, to titles and contents. */
export const makeChanges = (sql: PgClient, { workspaces, users, keys, prompts, fragments }: World) => {
  const keyIds = keys.map(({ id }) => id)
  const toPromptFields = (marker: string) => ({
    title: marker,
    current_content: `${marker} for {{customer}}`
  })
  const toFragmentFields = (marker: string) => ({ content: `${marker} with {{value}}` })
  // At first, row n belongs to the workspace at index n modulo the number of workspaces.
  const toHome = (index: number) => ({ workspace_id: workspaces[index % workspaces.length] })
  const makeRows = (marker: string) => ({
    workspaces: workspaces.map((id) => ({ id })),
    users: users.map((id) => ({ id, email: `${id}@example.com` })),
    api_keys: keys.map(({ id, plaintext }, index) => ({
      id,
      ...toHome(index),
      created_by: users[index % users.length],
      key_hash: Buffer.from(hashApiKey(plaintext), "hex"),
      ...toKeyEnds(plaintext)
    })),
    fragments: fragments.map((id, index) => ({ id, ...toHome(index), ...toFragmentFields(marker) })),
    prompts: prompts.map((id, index) => ({ id, ...toHome(index), ...toPromptFields(marker) }))
  })
  const update = (table: string, ids: ReadonlyArray<string>, values: Readonly<Record<string, unknown>>) =>
    sql`update ${sql(table)} set ${sql.update(values)} where ${sql.in("id", ids)}`
  /** Inserts the missing rows, and makes every prompt listed, every key valid and every workspace readable. */
  const restore = (marker: string) => [
    ...Object.entries(makeRows(marker)).map(
      ([table, rows]) =>
        sql`insert into ${sql(table)} ${sql.insert(rows as [(typeof rows)[number]])} on conflict (id) do nothing`
    ),
    update("api_keys", keyIds, { revoked_at: null }),
    update("prompts", prompts, { is_archived: false }),
    update("users", users, { must_reset_password: false }),
    update("workspaces", workspaces, { tier: "team", billing_status: "active" })
  ]
  const editPrompts = (ids: ReadonlyArray<string>, marker: string) =>
    update("prompts", ids, { ...toPromptFields(marker), updated_at: new Date() })
  const editFragments = (ids: ReadonlyArray<string>, marker: string) =>
    update("fragments", ids, toFragmentFields(marker))
  const bindFragments = (to: ReadonlyArray<string>, bound: ReadonlyArray<string>, marker: string) => [
    sql`delete from prompt_fragments where ${sql.in("prompt_id", to)}`,
    sql`insert into prompt_fragments (prompt_id, fragment_id, variable_overrides)
      select p.id, f.id, jsonb_build_object('value', ${marker}::text) from prompts p, fragments f
      where ${sql.in("p.id", to)} and ${sql.in("f.id", bound)}`
  ]
  const addVersions = (ids: ReadonlyArray<string>, marker: string) => [
    sql`update prompts set current_version = current_version + 1, title = ${marker} where ${sql.in("id", ids)}`,
    sql`insert into prompt_versions (prompt_id, version_number, content, change_summary)
      select id, current_version, ${marker}, ${marker} from prompts where ${sql.in("id", ids)}`
  ]

  /** Writes every row of the world, so that every response shows the change. */
  const changeEverything = (marker: string): Change => ({
    name: "change everything",
    statements: [
      ...restore(marker),
      editFragments(fragments, marker),
      editPrompts(prompts, marker),
      ...bindFragments(prompts, fragments, marker),
      ...addVersions(prompts, marker)
    ]
  })

  const makeRandomChange = (random: Random, marker: string): Change => {
    const [p, prompt] = random.pick([...prompts.entries()])
    const [f, fragment] = random.pick([...fragments.entries()])
    const [k, { id: key }] = random.pick([...keys.entries()])
    const [u, user] = random.pick([...users.entries()])
    const [w, workspace_id] = random.pick([...workspaces.entries()])
    const tier = random.pick(["free", "solo", "team"])
    const status = random.pick(["active", "past_due", "over_limit", "disputed"])
    const isBound = () => random.chance(0.3)
    const deletePrompt = sql`delete from prompts where id = ${prompt}`
    // The history often restores access, so that most keys are valid.
    const changes: Array<[weight: number, name: string, ...statements: Array<Statement<unknown>>]> = [
      [5, "restore all rows", ...restore(marker)],
      [3, `edit prompt ${p}`, editPrompts([prompt], marker)],
      [3, `edit fragment ${f}`, editFragments([fragment], marker)],
      // A response that mixes the states before and after this change is a violation.
      [
        4,
        `edit prompt ${p}, its bindings and all fragments`,
        editFragments(fragments, marker),
        editPrompts([prompt], marker),
        ...bindFragments([prompt], [fragment, ...fragments.filter(isBound)], marker)
      ],
      [2, `add a version to prompt ${p}`, ...addVersions([prompt], marker)],
      [1, `archive prompt ${p}`, update("prompts", [prompt], { is_archived: true })],
      // No reader may see the state between the statements.
      [3, `delete prompt ${p} and restore all rows`, deletePrompt, ...restore(marker)],
      [1, `delete prompt ${p}`, deletePrompt],
      [3, `move prompt ${p} to workspace ${w}`, update("prompts", [prompt], { workspace_id })],
      [3, `move fragment ${f} to workspace ${w}`, update("fragments", [fragment], { workspace_id })],
      [2, `move key ${k} to workspace ${w}`, update("api_keys", [key], { workspace_id })],
      [2, `revoke key ${k}`, update("api_keys", [key], { revoked_at: new Date() })],
      [1, `delete key ${k}`, sql`delete from api_keys where id = ${key}`],
      [
        2,
        `workspace ${w} is ${tier}, ${status}`,
        update("workspaces", [workspace_id], { tier, billing_status: status })
      ],
      [1, `user ${u} must reset the password`, update("users", [user], { must_reset_password: true })]
    ]
    const [, name, ...statements] = random.pickWeighted(changes)
    return { name, statements }
  }
  return { changeEverything, makeRandomChange }
}
