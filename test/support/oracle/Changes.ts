import { randomBytes } from "node:crypto"
import type { PgClient } from "@effect/sql-pg/PgClient"
import type { Statement } from "effect/sql/Statement"
import { hashApiKey, makeApiKey, toKeyEnds } from "../../../src/domain/ApiKey.ts"
import type { Random } from "../random.ts"

/** The ids of the rows that a history changes. */
export type World = ReturnType<typeof makeWorld>

/** Returns the ids of a world that no earlier run has used. The order of the ids is always the same. */
export const makeWorld = () => {
  const prefix = randomBytes(4).toString("hex")
  const makeIds = (kind: number, count: number): ReadonlyArray<string> =>
    Array.from({ length: count }, (_, i) => `${prefix}-000${kind}-4000-8000-${String(i).padStart(12, "0")}`)
  return {
    workspaces: makeIds(1, 3),
    users: makeIds(2, 2),
    keys: makeIds(3, 6).map((id) => ({ id, plaintext: makeApiKey(randomBytes(32)) })),
    prompts: makeIds(4, 12),
    fragments: makeIds(5, 6)
  }
}

/** A change of a world: the statements of one transaction. */
export interface Change {
  readonly name: string
  readonly statements: ReadonlyArray<Statement<unknown>>
}

/**
 * Makes the changes of a world. The titles and contents that a change writes contain its marker, which no other change
 * uses.
 */
export const makeChanges = (sql: PgClient, { workspaces, users, keys, prompts, fragments }: World) => {
  const keyIds = keys.map(({ id }) => id)
  const makePromptContent = (marker: string) => `Prompt of ${marker} for {{customer}}`
  const makeFragmentContent = (marker: string) => `Fragment of ${marker} with {{value}}`

  // A row belongs to the workspace, or to the user, at its index modulo their number.
  const insertKey = (index: number) => {
    const { id, plaintext } = keys[index]!
    return sql`insert into api_keys ${sql.insert({
      id,
      workspace_id: workspaces[index % workspaces.length],
      created_by: users[index % users.length],
      key_hash: Buffer.from(hashApiKey(plaintext), "hex"),
      ...toKeyEnds(plaintext)
    })} on conflict (id) do nothing`
  }
  const insertPrompt = (index: number, marker: string) =>
    sql`insert into prompts ${sql.insert({
      id: prompts[index],
      workspace_id: workspaces[index % workspaces.length],
      title: marker,
      current_content: makePromptContent(marker)
    })} on conflict (id) do nothing`
  const bindFragment = (prompt: string, fragment: string, position: number, marker: string) =>
    sql`insert into prompt_fragments (prompt_id, fragment_id, position, variable_overrides)
      select id, ${fragment}::uuid, ${position}::int, jsonb_build_object('value', ${marker}::text)
      from prompts where id = ${prompt}`
  const editPrompts = (ids: ReadonlyArray<string>, marker: string) =>
    sql`update prompts set title = ${marker}, current_content = ${makePromptContent(marker)}, updated_at = now()
      where ${sql.in("id", ids)}`
  const editFragments = (ids: ReadonlyArray<string>, marker: string) =>
    sql`update fragments set content = ${makeFragmentContent(marker)} where ${sql.in("id", ids)}`
  const addVersions = (ids: ReadonlyArray<string>, marker: string) => [
    sql`insert into prompt_versions (prompt_id, version_number, content, change_summary)
      select p.id, 1 + coalesce((select max(version_number) from prompt_versions where prompt_id = p.id), 0),
        ${marker}, ${marker}
      from prompts p where ${sql.in("p.id", ids)}`,
    sql`update prompts set current_version = current_version + 1, title = ${marker} where ${sql.in("id", ids)}`
  ]
  const set = (table: string, id: string, values: Readonly<Record<string, unknown>>) =>
    sql`update ${sql(table)} set ${sql.update(values)} where id = ${id}`
  /** Makes all keys valid and all workspaces readable. */
  const restoreAccess = () => [
    ...keys.map((_, index) => insertKey(index)),
    sql`update api_keys set revoked_at = null, workspace_id = coalesce(workspace_id, ${workspaces[0]})
      where ${sql.in("id", keyIds)}`,
    sql`update users set must_reset_password = false where ${sql.in("id", users)}`,
    sql`update workspaces set tier = 'team', billing_status = 'active' where ${sql.in("id", workspaces)}`
  ]

  /** Inserts every row of the world. */
  const create: Change = {
    name: "create the world",
    statements: [
      ...workspaces.map((id) => sql`insert into workspaces ${sql.insert({ id, tier: "team" })}`),
      ...users.map((id) => sql`insert into users ${sql.insert({ id, email: `${id}@example.com` })}`),
      ...keys.map((_, index) => insertKey(index)),
      ...fragments.map(
        (id, index) =>
          sql`insert into fragments ${sql.insert({
            id,
            workspace_id: workspaces[index % workspaces.length],
            content: makeFragmentContent("start")
          })}`
      ),
      ...prompts.map((_, index) => insertPrompt(index, "start")),
      // Binds two fragments of the workspace of the prompt.
      ...prompts.flatMap((prompt, index) =>
        [index, index + workspaces.length].map((of, position) =>
          bindFragment(prompt, fragments[of % fragments.length]!, position, "start")
        )
      )
    ]
  }

  /** Changes all prompts, version lists, fragments and keys, which is visible in every response. */
  const changeEverything = (marker: string): Change => ({
    name: "edit everything",
    statements: [
      ...restoreAccess(),
      ...prompts.map((_, index) => insertPrompt(index, marker)),
      editFragments(fragments, marker),
      editPrompts(prompts, marker),
      ...addVersions(prompts, marker)
    ]
  })

  const makeRandomChange = (random: Random, marker: string): Change => {
    const [p, prompt] = random.pick([...prompts.entries()])
    const [f, fragment] = random.pick([...fragments.entries()])
    const [k, { id: key }] = random.pick([...keys.entries()])
    const [u, user] = random.pick([...users.entries()])
    const [w, workspace] = random.pick([...workspaces.entries()])
    const [v, other] = random.pick([...workspaces.entries()])
    const tier = random.pick(["free", "solo", "team"])
    const billing = random.pick(["active", "past_due", "over_limit", "disputed"])
    const bindings = Array.from({ length: random.int(4) }, (_, position) =>
      bindFragment(prompt, random.pick(fragments), position, marker)
    )
    const deletePrompt = sql`delete from prompts where id = ${prompt}`
    // Access is restored often, so that most keys work.
    const [, name, ...statements] = random.pickWeighted<
      [weight: number, name: string, ...statements: Array<Statement<unknown>>]
    >([
      [4, `edit prompt ${p}`, editPrompts([prompt], marker)],
      [3, `edit fragment ${f}`, editFragments([fragment], marker)],
      // The checker detects a mix of two snapshots.
      [
        4,
        `edit prompt ${p}, its bindings and all fragments`,
        editFragments(fragments, marker),
        editPrompts([prompt], marker),
        sql`update prompt_fragments set variable_overrides = jsonb_build_object('value', ${marker}::text)
          where prompt_id = ${prompt}`
      ],
      [
        2,
        `bind other fragments to prompt ${p}`,
        sql`delete from prompt_fragments where prompt_id = ${prompt}`,
        ...bindings
      ],
      [2, `add a version to prompt ${p}`, ...addVersions([prompt], marker)],
      [
        1,
        `archive prompt ${p}, or restore it from the archive`,
        sql`update prompts set is_archived = not is_archived where id = ${prompt}`
      ],
      // No reader may see the state between the statements.
      [2, `delete prompt ${p} and insert it again`, deletePrompt, insertPrompt(p, marker)],
      [1, `delete prompt ${p}`, deletePrompt],
      [2, "insert the missing prompts", ...prompts.map((_, index) => insertPrompt(index, marker))],
      [3, `move prompt ${p} to workspace ${w}`, set("prompts", prompt, { workspace_id: workspace })],
      [3, `move fragment ${f} to workspace ${w}`, set("fragments", fragment, { workspace_id: workspace })],
      [
        1,
        `swap the prompts and fragments of workspaces ${w} and ${v}`,
        ...["prompts", "fragments"].map(
          (table) => sql`update ${sql(table)} set workspace_id =
            case when workspace_id = ${workspace}::uuid then ${other}::uuid else ${workspace}::uuid end
            where ${sql.in("workspace_id", [workspace, other])}`
        )
      ],
      [1, `move key ${k} to workspace ${w}`, set("api_keys", key, { workspace_id: workspace })],
      [1, `take key ${k} out`, set("api_keys", key, { workspace_id: null })],
      [2, `revoke key ${k}`, set("api_keys", key, { revoked_at: new Date() })],
      [1, `delete key ${k}`, sql`delete from api_keys where id = ${key}`],
      [1, `workspace ${w} gets tier ${tier}`, set("workspaces", workspace, { tier })],
      [
        1,
        `workspace ${w} gets billing status ${billing}`,
        set("workspaces", workspace, { billing_status: billing })
      ],
      [1, `user ${u} must reset the password`, set("users", user, { must_reset_password: true })],
      [5, "restore all keys and workspaces", ...restoreAccess()]
    ])
    return { name, statements }
  }
  return { create, changeEverything, makeRandomChange }
}
