import { type ApiKey, hashApiKey, toKeyEnds, makeApiKey } from "../../../src/domain/ApiKey.ts"
import type { makeRandom } from "../random.ts"

export type Random = ReturnType<typeof makeRandom>

/** A key of a world. */
export interface WorldKey {
  readonly id: string
  readonly plaintext: ApiKey
}

/** The rows that a history changes. Their ids depend only on the seed. */
export interface World {
  readonly workspaces: ReadonlyArray<string>
  readonly users: ReadonlyArray<string>
  readonly keys: ReadonlyArray<WorldKey>
  readonly prompts: ReadonlyArray<string>
  readonly fragments: ReadonlyArray<string>
}

export interface SqlStatement {
  readonly text: string
  readonly params: ReadonlyArray<unknown>
}

const sizes = { workspaces: 3, users: 2, keys: 6, prompts: 12, fragments: 6 }

const makeBytes = (random: Random, length: number): Uint8Array =>
  Uint8Array.from({ length }, () => random.int(256))

/** Returns a random UUID of version 4. */
export const makeUuid = (random: Random): string => {
  const hex = Buffer.from(makeBytes(random, 16)).toString("hex")
  return [
    hex.slice(0, 8),
    hex.slice(8, 12),
    `4${hex.slice(13, 16)}`,
    `a${hex.slice(17, 20)}`,
    hex.slice(20)
  ].join("-")
}

/** Returns the rows of a new world without inserting the rows. */
export const makeWorld = (random: Random): World => {
  const makeIds = (length: number) => Array.from({ length }, () => makeUuid(random))
  return {
    workspaces: makeIds(sizes.workspaces),
    users: makeIds(sizes.users),
    keys: Array.from({ length: sizes.keys }, () => ({
      id: makeUuid(random),
      plaintext: makeApiKey(makeBytes(random, 32))
    })),
    prompts: makeIds(sizes.prompts),
    fragments: makeIds(sizes.fragments)
  }
}

/** Returns the content of a prompt or a fragment after the step with this marker. */
export const makePromptContent = (marker: string): string => `Prompt of ${marker} for {{customer}}`
export const makeFragmentContent = (marker: string): string => `Fragment of ${marker} with {{value}}`

/**
 * Returns the statement that inserts a key, unless the key exists. The key belongs to the workspace and the user at
 * `index` modulo their number.
 */
export const insertKey = ({ workspaces, users, keys }: World, index: number): SqlStatement => {
  const { id, plaintext } = keys[index]!
  const { key_start, key_end } = toKeyEnds(plaintext)
  return {
    text: `insert into api_keys (id, workspace_id, created_by, key_hash, key_start, key_end)
      values ($1, $2, $3, decode($4, 'hex'), $5, $6) on conflict (id) do nothing`,
    params: [
      id,
      workspaces[index % workspaces.length],
      users[index % users.length],
      hashApiKey(plaintext),
      key_start,
      key_end
    ]
  }
}

/**
 * Returns the statement that inserts a prompt, unless the prompt exists. The prompt belongs to the workspace at `index`
 * modulo the number of workspaces.
 */
export const insertPrompt = (
  { workspaces, prompts }: World,
  index: number,
  marker: string
): SqlStatement => ({
  text: `insert into prompts (id, workspace_id, title, current_content) values ($1, $2, $3, $4)
    on conflict (id) do nothing`,
  params: [prompts[index], workspaces[index % workspaces.length], marker, makePromptContent(marker)]
})

export const bindFragment = (
  prompt: string,
  fragment: string,
  position: number,
  marker: string
): SqlStatement => ({
  text: `insert into prompt_fragments (prompt_id, fragment_id, position, variable_overrides)
    values ($1, $2, $3, jsonb_build_object('value', $4::text))`,
  params: [prompt, fragment, position, marker]
})

/**
 * Returns the statements that delete the rows of an earlier run with the same seed, and then insert every row of a
 * world.
 */
export const insertWorld = (world: World): ReadonlyArray<SqlStatement> => {
  const { workspaces, users, keys, prompts, fragments } = world
  const marker = "start"
  return [
    { text: "delete from api_keys where id = any($1::uuid[])", params: [keys.map(({ id }) => id)] },
    { text: "delete from workspaces where id = any($1::uuid[])", params: [workspaces] },
    { text: "delete from users where id = any($1::uuid[])", params: [users] },
    ...workspaces.map((id) => ({
      text: "insert into workspaces (id, tier) values ($1, 'team')",
      params: [id]
    })),
    ...users.map((id) => ({
      text: "insert into users (id, email) values ($1, $2)",
      params: [id, `${id}@example.com`]
    })),
    ...keys.map((_, index) => insertKey(world, index)),
    ...fragments.map((id, index) => ({
      text: "insert into fragments (id, workspace_id, content) values ($1, $2, $3)",
      params: [id, workspaces[index % workspaces.length], makeFragmentContent(marker)]
    })),
    ...prompts.map((_, index) => insertPrompt(world, index, marker)),
    // Binds the fragment at the index of the prompt (modulo the number of fragments), and the next fragment of its
    // workspace.
    ...prompts.flatMap((prompt, index) =>
      [index, index + workspaces.length].map((of, position) =>
        bindFragment(prompt, fragments[of % fragments.length]!, position, marker)
      )
    )
  ]
}
