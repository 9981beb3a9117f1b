import { hash, randomBytes } from "node:crypto"
import postgres, { type Sql } from "postgres"
import { runCommand } from "./command.ts"

/** A workspace of the dataset. Its prompts are numbered from 1. Every 50th prompt is archived. */
export interface Workspace {
  readonly number: number
  readonly prompts: number
  readonly key: string
}

const workspace = (number: number, prompts: number): Workspace => ({
  number,
  prompts,
  key: `key_live_${hash("sha256", `benchmark ${number}`, "hex")}`
})

/** Returns an additional key of a workspace. A workspace has one additional key per prompt, numbered from 1. */
export const makeKey = ({ number }: Workspace, index: number): string =>
  `key_live_${hash("sha256", `benchmark ${number} ${index}`, "hex")}`

export const thousand = workspace(1, 1_000)
export const hundredThousand = workspace(2, 100_000)

/**
 * The number of prompts, counted from prompt 1, that have `versionsPerHistory` versions. All other prompts have one
 * version.
 */
const promptsWithHistory = 1_000
const versionsPerHistory = 30

const kinds = { workspace: 1, folder: 2, tag: 3, fragment: 4, prompt: 5 } as const
type Kind = keyof typeof kinds

const idPrefix = ({ number }: Workspace, kind: Kind): string =>
  `0000000${number}-000${kinds[kind]}-4000-8000-`

export const makeId = (workspace: Workspace, kind: Kind, index: number): string =>
  idPrefix(workspace, kind) + index.toString(16).padStart(12, "0")

/** Returns how many prompts the list of a workspace contains. */
export const countListed = ({ prompts }: Workspace): number => prompts - Math.floor(prompts / 50)

/**
 * Returns the statements that fill one workspace. Shuffles `updated_at`, so that prompt lists are not in the physical
 * order of the rows.
 */
const makeStatements = (workspace: Workspace): ReadonlyArray<string> => {
  const { prompts } = workspace
  const shuffle = 7919
  const sqlId = (kind: Kind, index: string) =>
    `('${idPrefix(workspace, kind)}' || lpad(to_hex(${index}), 12, '0'))::uuid`
  const home = `'${makeId(workspace, "workspace", 1)}'::uuid`
  const updated = (index: string) =>
    `timestamptz '2024-01-01Z' + (${index}::bigint * ${shuffle} % ${prompts}) * interval '1 minute'`
  const type = (index: string) =>
    `(array['system', 'user', 'assistant', 'template', 'few-shot', 'chain-of-thought'])[1 + ${index} % 6]`
  const folder = (index: string) =>
    `case when ${index} % 3 > 0 then ${sqlId("folder", `1 + ${index} % 20`)} end`
  return [
    `insert into workspaces (id, name, tier) values (${home}, 'Benchmark', 'team')`,
    `insert into users (email) values ('owner-${workspace.number}@example.com')`,
    `insert into api_keys (workspace_id, created_by, key_hash)
      select ${home}, id, '\\x${hash("sha256", workspace.key, "hex")}' from users
      where email = 'owner-${workspace.number}@example.com'`,
    `insert into api_keys (workspace_id, created_by, key_hash)
      select ${home}, users.id,
        sha256(('key_live_' || encode(sha256(('benchmark ${workspace.number} ' || i)::bytea), 'hex'))::bytea)
      from users, generate_series(1, ${prompts}) i where email = 'owner-${workspace.number}@example.com'`,
    `insert into folders (id, workspace_id, name)
      select ${sqlId("folder", "i")}, ${home}, 'Folder ' || i from generate_series(1, 20) i`,
    `insert into tags (id, workspace_id, name)
      select ${sqlId("tag", "i")}, ${home}, 'tag' || i from generate_series(1, 20) i`,
    `insert into fragments (id, workspace_id, name, content)
      select ${sqlId("fragment", "i")}, ${home}, 'Fragment ' || i,
        'Answer in a {{tone}} tone, in {{ language }}. ' || repeat('Name your sources. ', 10) || i
      from generate_series(1, 1000) i`,
    `insert into prompts (id, workspace_id, title, description, current_content, prompt_type, target_model, intent,
        folder_id, is_archived, created_at, updated_at)
      select ${sqlId("prompt", "i")}, ${home}, 'Prompt ' || i, 'What prompt ' || i || ' is for, in a few words',
        'You are assistant ' || i || ' of {{company}}. ' || repeat('Answer briefly and to the point. ', 30),
        ${type("i")}, 'model-large', 'support', ${folder("i")}, i % 50 = 0, timestamptz '2024-01-01Z', ${updated("i")}
      from generate_series(1, ${prompts}) i`,
    // This statement also writes the columns that a trigger would set.
    `insert into prompt_tags (prompt_id, tag_id, workspace_id, listed_at, prompt_type, folder_id)
      select ${sqlId("prompt", "i")}, ${sqlId("tag", "1 + (i + t) % 20")}, ${home},
        case when i % 50 > 0 then ${updated("i")} end, ${type("i")}, ${folder("i")}
      from generate_series(1, ${prompts}) i, generate_series(0, 1) t`,
    `insert into prompt_fragments (prompt_id, fragment_id, position, variable_overrides)
      select ${sqlId("prompt", "i")}, ${sqlId("fragment", "1 + (i + f) % 1000")}, f,
        '{"tone": "friendly", "language": "English"}'
      from generate_series(1, ${prompts}) i, generate_series(1, 2) f`,
    `insert into prompt_versions (prompt_id, version_number, content, change_summary, change_source, created_at)
      select ${sqlId("prompt", "i")}, v, 'You are assistant ' || i, 'Change ' || v, 'manual',
        timestamptz '2024-01-01Z' + v * interval '1 day'
      from generate_series(1, ${prompts}) i,
        generate_series(1, case when i <= ${promptsWithHistory} then ${versionsPerHistory} else 1 end) v`
  ]
}

/**
 * Inserts rows without triggers and foreign key checks. The rows need no checks, and triggers that write each prompt
 * several times would make the table of prompts several times as large.
 */
const insertRows = async (sql: Sql, statements: ReadonlyArray<string>): Promise<void> => {
  await sql.begin(async (transaction) => {
    await transaction.unsafe("set local session_replication_role = replica")
    // These triggers fire even with session_replication_role = replica.
    const triggers = await transaction`
      select tgrelid::regclass as table, tgname as name, case tgenabled when 'A' then 'always' else 'replica' end as mode
      from pg_trigger where tgenabled in ('A', 'R')`
    for (const { table, name } of triggers)
      await transaction.unsafe(`alter table ${table} disable trigger ${name}`)
    for (const statement of statements) await transaction.unsafe(statement)
    for (const { table, name, mode } of triggers)
      await transaction.unsafe(`alter table ${table} enable ${mode} trigger ${name}`)
  })
  await sql.unsafe("vacuum analyze")
}

/** A temporary database with every table. */
export type Dataset = Awaited<ReturnType<typeof createDataset>>

export const createDataset = async (serverUrl: string) => {
  const name = `bench_${randomBytes(8).toString("hex")}`
  const server = postgres(serverUrl, { max: 1, onnotice: () => {} })
  const [version] = await server`show server_version`
  await server.unsafe(`create database ${name} template template0`)
  const url = new URL(serverUrl)
  url.pathname = `/${name}`
  const sql = postgres(url.href, { max: 1, onnotice: () => {} })
  const drop = async () => {
    await sql.end({ timeout: 5 })
    await server.unsafe(`drop database ${name} with (force)`)
    await server.end()
  }
  try {
    await runCommand(["migrate"], url.href)
  } catch (error) {
    await drop()
    throw error
  }
  const loaded = new Map<Workspace, Promise<void>>()
  return {
    url: url.href,
    sql,
    server: `PostgreSQL ${version!.server_version}`,
    /** Fills a workspace. Later calls only wait until the first call has filled the workspace. */
    load: (workspace: Workspace): Promise<void> => {
      const loading = loaded.get(workspace) ?? insertRows(sql, makeStatements(workspace))
      loaded.set(workspace, loading)
      return loading
    },
    drop
  }
}
