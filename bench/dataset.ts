import { hash, randomBytes } from "node:crypto"
import postgres, { type Sql } from "postgres"
import { run } from "../test/support/service.ts"

/** A workspace of the data set: its prompts are numbered from 1, every 50th is archived. */
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

export const thousand = workspace(1, 1_000)
export const hundredThousand = workspace(2, 100_000)
export const million = workspace(3, 1_000_000)

/** Prompts with a history of `versionsOfSome`; the others have one version. */
const promptsWithHistory = 1_000
export const versionsOfSome = 30

const kinds = { workspace: 1, folder: 2, tag: 3, fragment: 4, prompt: 5 } as const
type Kind = keyof typeof kinds

const idStart = ({ number }: Workspace, kind: Kind): string => `0000000${number}-000${kinds[kind]}-4000-8000-`

export const idOf = (workspace: Workspace, kind: Kind, index: number): string =>
  idStart(workspace, kind) + index.toString(16).padStart(12, "0")

/** How many prompts the list holds. */
export const listed = ({ prompts }: Workspace): number => prompts - Math.floor(prompts / 50)

/** The statements that fill one workspace. Times are shuffled, so that the list's order is not that of the table. */
const statementsOf = (workspace: Workspace): ReadonlyArray<string> => {
  const { prompts } = workspace
  // A workspace of a million prompts is there for its list alone: what makes it slow to load is left out.
  const { shuffle, repeats, withParts } =
    prompts > 100_000
      ? { shuffle: 1, repeats: 1, withParts: 1_000 }
      : { shuffle: 7919, repeats: 30, withParts: prompts }
  const sqlId = (kind: Kind, index: string) =>
    `('${idStart(workspace, kind)}' || lpad(to_hex(${index}), 12, '0'))::uuid`
  const home = `'${idOf(workspace, "workspace", 1)}'::uuid`
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
        'You are assistant ' || i || ' of {{company}}. ' || repeat('Answer briefly and to the point. ', ${repeats}),
        ${type("i")}, 'model-large', 'support', ${folder("i")}, i % 50 = 0, timestamptz '2024-01-01Z', ${updated("i")}
      from generate_series(1, ${prompts}) i`,
    // What its trigger would make of each row, which would take most of the time.
    `insert into prompt_tags (prompt_id, tag_id, workspace_id, listed_at, prompt_type, folder_id)
      select ${sqlId("prompt", "i")}, ${sqlId("tag", "1 + (i + t) % 20")}, ${home},
        case when i % 50 > 0 then ${updated("i")} end, ${type("i")}, ${folder("i")}
      from generate_series(1, ${withParts}) i, generate_series(0, 1) t`,
    `insert into prompt_fragments (prompt_id, fragment_id, position, variable_overrides)
      select ${sqlId("prompt", "i")}, ${sqlId("fragment", "1 + (i + f) % 1000")}, f,
        '{"tone": "friendly", "language": "English"}'
      from generate_series(1, ${withParts}) i, generate_series(1, 2) f`,
    `insert into prompt_versions (prompt_id, version_number, content, change_summary, change_source, created_at)
      select ${sqlId("prompt", "i")}, v, 'You are assistant ' || i, 'Change ' || v, 'manual',
        timestamptz '2024-01-01Z' + v * interval '1 day'
      from generate_series(1, ${withParts}) i,
        generate_series(1, case when i <= ${promptsWithHistory} then ${versionsOfSome} else 1 end) v`
  ]
}

/** A database of its own on the server, with every table; `load` fills one workspace, once. */
export interface Dataset {
  readonly url: string
  readonly server: string
  readonly load: (workspace: Workspace) => Promise<void>
  readonly drop: () => Promise<void>
}

/** `set local` spares the triggers and foreign keys of rows that are right by construction. */
const fill = async (sql: Sql, workspace: Workspace): Promise<void> => {
  await sql.begin(async (transaction) => {
    await transaction.unsafe("set local session_replication_role = replica")
    for (const statement of statementsOf(workspace)) await transaction.unsafe(statement)
  })
  await sql.unsafe("vacuum analyze")
}

export const createDataset = async (serverUrl: string): Promise<Dataset> => {
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
  const migrated = await run(["migrate"], { DATABASE_URL: url.href })
  if (migrated.code !== 0) {
    await drop()
    throw new Error(`the database was not migrated: ${migrated.stderr}`)
  }
  const loaded = new Map<Workspace, Promise<void>>()
  return {
    url: url.href,
    server: `PostgreSQL ${version!.server_version}`,
    load: (workspace) => {
      const loading = loaded.get(workspace) ?? fill(sql, workspace)
      loaded.set(workspace, loading)
      return loading
    },
    drop
  }
}
