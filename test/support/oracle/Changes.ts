import {
  bindFragment,
  insertKey,
  insertPrompt,
  makeFragmentContent,
  makePromptContent,
  type Random,
  type SqlStatement,
  type World
} from "./World.ts"

/** A change of a world: the statements of one transaction. */
export interface Change {
  readonly name: string
  readonly statements: ReadonlyArray<SqlStatement>
}

/** Makes a change. The titles and contents that it writes contain the marker, which no other step uses. */
type MakeChange = (random: Random, world: World, marker: string) => Change

const editPrompts = (ids: ReadonlyArray<string>, marker: string): SqlStatement => ({
  text: "update prompts set title = $2, current_content = $3, updated_at = now() where id = any($1::uuid[])",
  params: [ids, marker, makePromptContent(marker)]
})

const editFragments = (ids: ReadonlyArray<string>, marker: string): SqlStatement => ({
  text: "update fragments set content = $2 where id = any($1::uuid[])",
  params: [ids, makeFragmentContent(marker)]
})

const update = (table: string, assignment: string, id: string, ...params: ReadonlyArray<unknown>) => ({
  text: `update ${table} set ${assignment} where id = $1`,
  params: [id, ...params]
})

const editPrompt: MakeChange = (random, { prompts }, marker) => {
  const index = random.int(prompts.length)
  return { name: `edit prompt ${index}`, statements: [editPrompts([prompts[index]!], marker)] }
}

const editFragment: MakeChange = (random, { fragments }, marker) => {
  const index = random.int(fragments.length)
  return { name: `edit fragment ${index}`, statements: [editFragments([fragments[index]!], marker)] }
}

/** Changes a prompt, its bindings and all fragments, so that the checker detects a mix of two snapshots. */
const editTogether: MakeChange = (random, { prompts, fragments }, marker) => {
  const index = random.int(prompts.length)
  return {
    name: `edit prompt ${index}, its bindings and all fragments`,
    statements: [
      editFragments(fragments, marker),
      editPrompts([prompts[index]!], marker),
      {
        text: "update prompt_fragments set variable_overrides = jsonb_build_object('value', $2::text) where prompt_id = $1",
        params: [prompts[index], marker]
      }
    ]
  }
}

const rebindFragments: MakeChange = (random, { prompts, fragments }, marker) => {
  const index = random.int(prompts.length)
  const prompt = prompts[index]!
  return {
    name: `bind other fragments to prompt ${index}`,
    statements: [
      { text: "delete from prompt_fragments where prompt_id = $1", params: [prompt] },
      ...Array.from({ length: random.int(4) }, (_, position) =>
        bindFragment(prompt, random.pick(fragments), position, marker)
      )
    ]
  }
}

const addVersions = (ids: ReadonlyArray<string>, marker: string): ReadonlyArray<SqlStatement> => [
  {
    text: `insert into prompt_versions (prompt_id, version_number, content, change_summary)
      select p.id, 1 + coalesce((select max(version_number) from prompt_versions where prompt_id = p.id), 0), $2, $2
      from prompts p where p.id = any($1::uuid[])`,
    params: [ids, marker]
  },
  {
    text: "update prompts set current_version = current_version + 1, title = $2 where id = any($1::uuid[])",
    params: [ids, marker]
  }
]

const addVersion: MakeChange = (random, { prompts }, marker) => {
  const index = random.int(prompts.length)
  return { name: `add a version to prompt ${index}`, statements: addVersions([prompts[index]!], marker) }
}

const toggleArchived: MakeChange = (random, { prompts }) => {
  const index = random.int(prompts.length)
  return {
    name: `archive prompt ${index}, or restore it from the archive`,
    statements: [update("prompts", "is_archived = not is_archived", prompts[index]!)]
  }
}

/** Deletes a prompt and inserts it again in one transaction. No reader may see the state between the statements. */
const replacePrompt: MakeChange = (random, world, marker) => {
  const index = random.int(world.prompts.length)
  return {
    name: `delete prompt ${index} and insert it again`,
    statements: [
      { text: "delete from prompts where id = $1", params: [world.prompts[index]] },
      insertPrompt(world, index, marker)
    ]
  }
}

const deletePrompt: MakeChange = (random, { prompts }) => {
  const index = random.int(prompts.length)
  return {
    name: `delete prompt ${index}`,
    statements: [{ text: "delete from prompts where id = $1", params: [prompts[index]] }]
  }
}

const insertPrompts: MakeChange = (_random, world, marker) => ({
  name: "insert the missing prompts",
  statements: world.prompts.map((_, index) => insertPrompt(world, index, marker))
})

const movePrompt: MakeChange = (random, { workspaces, prompts }) => {
  const [index, target] = [random.int(prompts.length), random.int(workspaces.length)]
  return {
    name: `move prompt ${index} to workspace ${target}`,
    statements: [update("prompts", "workspace_id = $2", prompts[index]!, workspaces[target])]
  }
}

const moveFragment: MakeChange = (random, { workspaces, fragments }) => {
  const [index, target] = [random.int(fragments.length), random.int(workspaces.length)]
  return {
    name: `move fragment ${index} to workspace ${target}`,
    statements: [update("fragments", "workspace_id = $2", fragments[index]!, workspaces[target])]
  }
}

/** Exchanges the prompts and fragments of two workspaces. */
const swapWorkspaces: MakeChange = (random, { workspaces }) => {
  const index = random.int(workspaces.length)
  const [first, second] = [workspaces[index], workspaces[(index + 1) % workspaces.length]]
  return {
    name: `swap the prompts and fragments of workspace ${index} and the next one`,
    statements: ["prompts", "fragments"].map((table) => ({
      text: `update ${table} set workspace_id = case when workspace_id = $1::uuid then $2::uuid else $1::uuid end
        where workspace_id in ($1::uuid, $2::uuid)`,
      params: [first, second]
    }))
  }
}

const moveKey: MakeChange = (random, { workspaces, keys }) => {
  const [index, target] = [random.int(keys.length), random.int(workspaces.length + 1)]
  return {
    name: target === workspaces.length ? `take key ${index} out` : `move key ${index} to workspace ${target}`,
    statements: [update("api_keys", "workspace_id = $2", keys[index]!.id, workspaces[target] ?? null)]
  }
}

const revokeKey: MakeChange = (random, { keys }) => {
  const index = random.int(keys.length)
  return {
    name: `revoke key ${index}`,
    statements: [update("api_keys", "revoked_at = now()", keys[index]!.id)]
  }
}

const deleteKey: MakeChange = (random, { keys }) => {
  const index = random.int(keys.length)
  return {
    name: `delete key ${index}`,
    statements: [{ text: "delete from api_keys where id = $1", params: [keys[index]!.id] }]
  }
}

/** Restores every key in some workspace. The tier or the billing status of the workspace may still reject the key. */
const restoreKeys = (world: World): ReadonlyArray<SqlStatement> => [
  ...world.keys.map((_, index) => insertKey(world, index)),
  {
    text: "update api_keys set revoked_at = null, workspace_id = coalesce(workspace_id, $2::uuid) where id = any($1::uuid[])",
    params: [world.keys.map(({ id }) => id), world.workspaces[0]]
  },
  {
    text: "update users set must_reset_password = false where id = any($1::uuid[])",
    params: [world.users]
  }
]

const activateWorkspaces = ({ workspaces }: World): SqlStatement => ({
  text: "update workspaces set tier = 'team', billing_status = 'active' where id = any($1::uuid[])",
  params: [workspaces]
})

const restoreAccess: MakeChange = (_random, world) => ({
  name: "restore all keys and workspaces",
  statements: [...restoreKeys(world), activateWorkspaces(world)]
})

const setTier: MakeChange = (random, { workspaces }) => {
  const index = random.int(workspaces.length)
  const tier = random.pick(["free", "solo", "team"])
  return {
    name: `workspace ${index} gets tier ${tier}`,
    statements: [update("workspaces", "tier = $2", workspaces[index]!, tier)]
  }
}

const setBilling: MakeChange = (random, { workspaces }) => {
  const index = random.int(workspaces.length)
  const status = random.pick(["active", "past_due", "over_limit", "disputed"])
  return {
    name: `workspace ${index} gets billing status ${status}`,
    statements: [update("workspaces", "billing_status = $2", workspaces[index]!, status)]
  }
}

const requireReset: MakeChange = (random, { users }) => {
  const index = random.int(users.length)
  return {
    name: `user ${index} must reset the password`,
    statements: [update("users", "must_reset_password = true", users[index]!)]
  }
}

/** Every kind of change with its relative frequency. Access is restored often, so that most keys work. */
const kinds: ReadonlyArray<readonly [weight: number, make: MakeChange]> = [
  [4, editPrompt],
  [3, editFragment],
  [4, editTogether],
  [2, rebindFragments],
  [2, addVersion],
  [1, toggleArchived],
  [2, replacePrompt],
  [1, deletePrompt],
  [2, insertPrompts],
  [3, movePrompt],
  [3, moveFragment],
  [1, swapWorkspaces],
  [2, moveKey],
  [2, revokeKey],
  [1, deleteKey],
  [1, setTier],
  [1, setBilling],
  [1, requireReset],
  [5, restoreAccess]
]

const deck = kinds.flatMap(([weight, make]) => Array.from({ length: weight }, () => make))

export const makeChange: MakeChange = (random, world, marker) => random.pick(deck)(random, world, marker)

/** Makes a change of all prompts, version lists, fragments and keys, which is visible in every response. */
export const changeEverything = (world: World, marker: string): Change => ({
  name: "edit everything",
  statements: [
    ...restoreKeys(world),
    activateWorkspaces(world),
    ...world.prompts.map((_, index) => insertPrompt(world, index, marker)),
    editFragments(world.fragments, marker),
    editPrompts(world.prompts, marker),
    ...addVersions(world.prompts, marker)
  ]
})
