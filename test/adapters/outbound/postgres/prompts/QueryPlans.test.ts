import { hash } from "node:crypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Statement } from "../../../../../src/adapters/outbound/postgres/driver/Query.ts"
import { Database } from "../../../../../src/adapters/outbound/postgres/Database.ts"
import { selectKeysByHash } from "../../../../../src/adapters/outbound/postgres/keys/PostgresKeyStore.ts"
import * as pages from "../../../../../src/adapters/outbound/postgres/prompts/PageQueries.ts"
import {
  selectManySources,
  selectPromptsByKey,
  selectSources,
  selectVersion
} from "../../../../../src/adapters/outbound/postgres/prompts/PostgresPromptRepo.ts"
import type { PromptFilter } from "../../../../../src/application/ports/PromptRepo.ts"
import type { KeyHash } from "../../../../../src/domain/ApiKey.ts"
import type { FolderId, PromptId } from "../../../../../src/domain/Prompt.ts"
import type { Timestamp } from "../../../../../src/domain/Timestamp.ts"
import type { VersionNumber } from "../../../../../src/domain/Version.ts"
import type { WorkspaceId } from "../../../../../src/domain/WorkspaceId.ts"
import { migratedDatabase } from "../../../../support/postgres.ts"

const id = <A extends string>(kind: number, index: number): A =>
  `00000000-0000-4000-800${kind}-${index.toString(16).padStart(12, "0")}` as A
const sqlId = (kind: number, index: string) =>
  `('00000000-0000-4000-800${kind}-' || lpad(to_hex(${index}), 12, '0'))::uuid`

const hashText = (text: string): KeyHash => hash("sha256", text, "hex") as KeyHash

/** The size of a database. */
interface Size {
  /** The number of prompts in the two workspaces that are read. */
  readonly prompts: number
  /** The number of other workspaces. */
  readonly smallWorkspaces: number
}

/** The values that statements look up: a workspace, and one key, up to 100 prompts and one folder of the workspace. */
interface Place {
  readonly name: string
  readonly workspace: WorkspaceId
  readonly key: KeyHash
  readonly prompt: PromptId
  readonly prompts: ReadonlyArray<PromptId>
  readonly folder_id: FolderId
}

/** Returns how many prompts belong to the first workspace: all except the last thousandth. */
const countFirst = (prompts: number): number => prompts - prompts / 1000

const listPrompts = (first: number, count: number): ReadonlyArray<PromptId> =>
  Array.from({ length: Math.min(count, 100) }, (_, index) => id(5, first + index))

const listPlaces = (prompts: number): ReadonlyArray<Place> => [
  {
    name: "a workspace with nearly all prompts",
    workspace: id(1, 1),
    key: hashText("1"),
    prompt: id(5, 7),
    prompts: listPrompts(1, countFirst(prompts)),
    folder_id: id(2, 3)
  },
  {
    name: "a workspace with a thousandth of the prompts",
    workspace: id(1, 2),
    key: hashText("5001"),
    prompt: id(5, countFirst(prompts) + 1),
    prompts: listPrompts(countFirst(prompts) + 1, prompts - countFirst(prompts)),
    folder_id: id(2, 23)
  }
]

/**
 * Returns the statements that fill two workspaces, each with 20 folders and 20 tags. Every second prompt has `tag1`,
 * one of 5,000 prompts has `tag0`, and nearly every prompt has one of the other 18 tags. The first workspace also has
 * 2,000 empty folders and 2,000 unused tags. If there are small workspaces, PostgreSQL estimates few rows per workspace
 * and per prompt.
 */
const makeLoadStatements = ({ prompts, smallWorkspaces }: Size): ReadonlyArray<string> => {
  const first = countFirst(prompts)
  const workspaceOf = (index: string, count: number) =>
    `case when ${index} <= ${count} then '${id(1, 1)}'::uuid else '${id(1, 2)}' end`
  /** Selects the first `count` prompts of each of the two workspaces. */
  const withParts = (count: number) =>
    `(select i from generate_series(1, ${Math.min(count, first)}) i
      union all select i from generate_series(${first + 1}, ${Math.min(first + count, prompts)}) i) part`
  return [
    // The rows are valid, and the triggers would take most of the time of this test. This setting
    // disables normal triggers but not the triggers that also fire on replicas, so the next statements disable those.
    "set local session_replication_role = replica",
    ...["prompts", "prompt_tags", "prompt_versions", "prompt_fragments"].map(
      (table) => `alter table ${table} disable trigger user`
    ),
    `insert into workspaces (id, tier) values ('${id(1, 1)}', 'team'), ('${id(1, 2)}', 'team')`,
    "insert into users (email) select 'user' || i from generate_series(1, 1000) i",
    `insert into api_keys (workspace_id, created_by, key_hash)
      select ${workspaceOf("i", 5000)}, (select id from users limit 1), sha256(i::text::bytea)
      from generate_series(1, 5001) i`,
    `insert into folders (id, workspace_id)
      select ${sqlId(2, "i")}, ${workspaceOf("i", 20)} from generate_series(1, 40) i`,
    `insert into tags (id, workspace_id, name)
      select ${sqlId(3, "i")}, ${workspaceOf("i", 20)}, 'tag' || i % 20 from generate_series(1, 40) i`,
    `insert into folders (id, workspace_id)
      select ${sqlId(2, "i")}, '${id(1, 1)}' from generate_series(41, 2040) i`,
    `insert into fragments (id, workspace_id, content)
      select ${sqlId(4, "i")}, ${workspaceOf("i", 1000)}, repeat('x', 200) from generate_series(1, 2000) i`,
    `insert into prompts (id, workspace_id, current_content, prompt_type, folder_id, is_archived, updated_at)
      select ${sqlId(5, "i")}, ${workspaceOf("i", first)}, repeat('x', 200),
        (array['system', 'user', 'assistant', 'template', 'few-shot', 'chain-of-thought'])[1 + i % 6],
        case when i % 3 > 0 then ${sqlId(2, `i / 3 % 20 + case when i <= ${first} then 1 else 21 end`)} end,
        i % 50 = 0, timestamptz '2026-01-01Z' + (i::bigint * 7919 % ${prompts}) * interval '1 minute'
      from generate_series(1, ${prompts}) i`,
    ...makeSmallWorkspaces(smallWorkspaces, prompts),
    `insert into prompt_tags (prompt_id, tag_id, workspace_id, listed_at, prompt_type, folder_id)
      select p.id, t.id, p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id
      from prompts p cross join lateral (values (('x' || right(p.id::text, 12))::bit(48)::bigint)) n(i)
      cross join lateral (values ('tag1', i % 2 = 0), ('tag0', i % 5000 = 1),
        ('tag' || 2 + i % 18, i % 1000000 < 100000)) tagged(name, applies)
      join tags t on t.workspace_id = p.workspace_id and t.name = tagged.name
      where applies`,
    // Inserted after `prompt_tags`, because the join above would compare each prompt with each of these tags.
    `insert into tags (id, workspace_id, name)
      select ${sqlId(3, "i")}, '${id(1, 1)}', 'unused' || i from generate_series(41, 2040) i`,
    `insert into prompt_versions (prompt_id, version_number, content)
      select ${sqlId(5, "i")}, n, repeat('x', 200) from ${withParts(10)}, generate_series(1, 2000) n`,
    `insert into prompt_fragments (prompt_id, fragment_id, position)
      select ${sqlId(5, "i")}, ${sqlId(4, `1 + (i + f) % 1000 + case when i <= ${first} then 0 else 1000 end`)}, f
      from ${withParts(5000)}, generate_series(1, 3) f`
  ]
}

/**
 * Returns the statements that fill workspaces of the tier Free. Each workspace has a key, a folder, the tag `tag1`, a
 * fragment, and two prompts with two versions each.
 */
const makeSmallWorkspaces = (count: number, prompts: number): ReadonlyArray<string> => {
  const each = `from generate_series(1, ${count}) i`
  const eachPrompt = `from generate_series(1, ${2 * count}) p, lateral (values ((p + 1) / 2)) workspace(i)`
  const workspace = sqlId(1, "i + 2")
  const prompt = sqlId(5, `p + ${prompts}`)
  return [
    `insert into workspaces (id) select ${workspace} ${each}`,
    `insert into api_keys (workspace_id, created_by, key_hash)
      select ${workspace}, (select id from users limit 1), sha256(('small' || i)::bytea) ${each}`,
    `insert into folders (id, workspace_id) select ${sqlId(2, "i + 2040")}, ${workspace} ${each}`,
    `insert into tags (id, workspace_id, name) select ${sqlId(3, "i + 2040")}, ${workspace}, 'tag1' ${each}`,
    `insert into fragments (id, workspace_id) select ${sqlId(4, "i + 2000")}, ${workspace} ${each}`,
    `insert into prompts (id, workspace_id, folder_id, updated_at)
      select ${prompt}, ${workspace}, ${sqlId(2, "i + 2040")}, timestamptz '2026-01-01Z' + p * interval '1 minute'
      ${eachPrompt}`,
    `insert into prompt_versions (prompt_id, version_number) select ${prompt}, n ${eachPrompt}, generate_series(1, 2) n`,
    `insert into prompt_fragments (prompt_id, fragment_id) select ${prompt}, ${sqlId(4, "i + 2000")} ${eachPrompt}`
  ]
}

/** Fills a database. To be three times as fast, builds the largest indexes after the rows are inserted. */
const load = (size: Size) =>
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const { transact } = yield* Database
    const run = (statements: ReadonlyArray<string>) =>
      Effect.forEach(statements, (statement) => sql.unsafe(statement), { discard: true })
    yield* transact(
      Effect.gen(function* () {
        const indexes = yield* sql<{ readonly name: string; readonly definition: string }>`
          select indexname as name, indexdef as definition from pg_indexes
          where schemaname = current_schema and tablename in ('prompts', 'prompt_tags') and indexname not in (
            select conname from pg_constraint
          )`
        yield* run(indexes.map(({ name }) => `drop index ${name}`))
        yield* run(makeLoadStatements(size))
        yield* run(indexes.map(({ definition }) => definition))
        // With this target, the statistics contain all rows, so the plans do not depend on a random sample.
        yield* run(["set local default_statistics_target = 1000", "analyze"])
      })
    )
    yield* sql`vacuum`
  })

const loadedDatabase = (size: Size) =>
  Layer.effectDiscard(load(size)).pipe(Layer.provideMerge(migratedDatabase))

interface Plan {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly "Rows Removed by Filter"?: number
  readonly "Shared Hit Blocks": number
  readonly "Shared Read Blocks": number
  readonly Plans?: ReadonlyArray<Plan>
}

const listNodes = (plan: Plan): ReadonlyArray<Plan> => [plan, ...(plan.Plans ?? []).flatMap(listNodes)]

const quote = (value: unknown): string =>
  `'${(Array.isArray(value) ? `{${value.join()}}` : String(value)).replaceAll("'", "''")}'`

/**
 * Returns the nodes of a statement's plan: the custom plan for its values, or the generic plan of a prepared statement.
 */
const explain = Effect.fnUntraced(function* ({ text, params }: Statement, mode: "custom" | "generic") {
  const sql = yield* PgClient.PgClient
  const values = params.length === 0 ? "" : `(${params.map(quote).join(", ")})`
  const [row] = yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql.unsafe(`set local plan_cache_mode = force_${mode}_plan`)
      yield* sql.unsafe(`prepare explained as ${text}`)
      const rows = yield* sql.unsafe<{ readonly "QUERY PLAN": ReadonlyArray<{ readonly Plan: Plan }> }>(
        `explain (analyze, buffers, timing off, format json) execute explained${values}`
      )
      yield* sql.unsafe("deallocate explained")
      return rows
    })
  )
  // The plans of PostgreSQL 18 contain numbers of rows with decimals, which the driver parses into objects. The
  // conversion to JSON and back replaces the objects with numbers.
  return listNodes(JSON.parse(JSON.stringify(row!["QUERY PLAN"][0]!.Plan)))
})

const makeFilters = ({ folder_id }: Place): ReadonlyArray<readonly [filter: PromptFilter, index: string]> => [
  [{}, "prompts_list"],
  [{ type: "user" }, "prompts_type"],
  [{ folder_id }, "prompts_folder"],
  [{ folder_id, type: "user" }, "prompts_folder"],
  ...["tag0", "tag1", "tag2", "no such tag"].flatMap((tag) =>
    [{ tag }, { tag, type: "user" }, { tag, folder_id }, { tag, folder_id, type: "user" }].map(
      (filter) => [filter as PromptFilter, "prompt_tags_list"] as const
    )
  )
]

/** The tables that grow with a workspace. */
const largeTables = ["prompts", "prompt_tags", "prompt_versions", "prompt_fragments", "fragments", "api_keys"]

/** Fails if a statement sorts or fetches more than 100 rows, or scans a large table sequentially. */
const assertNoScan = (plan: ReadonlyArray<Plan>, context: string): void => {
  for (const node of plan) {
    const rows = node["Actual Rows"] * node["Actual Loops"]
    const readRows = rows + (node["Rows Removed by Filter"] ?? 0) * node["Actual Loops"]
    if (node["Node Type"] === "Seq Scan" && largeTables.includes(node["Relation Name"] ?? ""))
      assert.strictEqual(readRows, 0, context)
    // A statement sorts the fetched rows of its page again.
    if (node["Node Type"].includes("Sort")) assert.isAtMost(rows, 100, context)
    if (node["Node Type"] === "Index Scan") assert.isAtMost(readRows, 100, context)
    if (node["Node Type"] === "Bitmap Heap Scan") assert.isAtMost(readRows, 100, context)
  }
}

/** Fails if a statement reads more buffers than the indexes and tables of its result need. */
const assertFewBuffers = ([statement]: ReadonlyArray<Plan>, context: string, readsPerRow = 1): void => {
  const buffers = statement!["Shared Hit Blocks"] + statement!["Shared Read Blocks"]
  assert.isAtMost(buffers, 100 + 16 * readsPerRow * statement!["Actual Rows"], context)
}

const sizes: ReadonlyArray<Size> = [
  { prompts: 10_000, smallWorkspaces: 20_000 },
  { prompts: 100_000, smallWorkspaces: 0 }
]

for (const size of sizes) {
  const { prompts, smallWorkspaces } = size
  const beside = smallWorkspaces > 0 ? ` beside ${smallWorkspaces.toLocaleString("en")} small workspaces` : ""
  const title = `with ${prompts.toLocaleString("en")} prompts${beside}`
  describe(title, () => {
    layer(loadedDatabase(size), { excludeTestServices: true, timeout: "180 seconds" })((it) => {
      for (const place of listPlaces(prompts))
        for (const mode of ["custom", "generic"] as const) {
          it.effect(`lists of ${place.name} use one index and fetch only the page (${mode} plan)`, () =>
            Effect.gen(function* () {
              for (const [filter, index] of makeFilters(place)) {
                for (const [query, page] of [pages.selectPrompts, pages.selectPromptPage].flatMap((query) =>
                  [1, 2000].map((page) => [query, page] as const)
                )) {
                  const statement = query(place.workspace, filter, { page, per_page: 20 })
                  const plan = yield* explain(statement, mode)
                  const context = JSON.stringify({ filter, page, plan })
                  assertNoScan(plan, context)
                  // For a later page, the statement also reads the skipped rows. For a partial page, the statement
                  // reads its part of the index to the end.
                  if (query === pages.selectPromptPage && page === 1 && plan[0]!["Actual Rows"] === 20)
                    assertFewBuffers(plan, context)
                  const indexScans = plan.filter((node) => node["Node Type"] === "Index Only Scan")
                  const used = new Set(indexScans.map((node) => node["Index Name"]))
                  assert.isTrue(used.has(index), context)
                  assert.isTrue(
                    [...used].every((name) => [index, "folders_pkey"].includes(name!)),
                    context
                  )
                }
              }
            })
          )

          it.effect(
            `reads of ${place.name} by id, name, hash or version number use an index (${mode} plan)`,
            () =>
              Effect.gen(function* () {
                const { workspace, prompt } = place
                const batch = place.prompts.slice(0, 16).map((prompt) => ({ workspace, prompt }))
                // All prompts have the same slug, and their ids start with the same digits.
                const names = ["00000000", prompt.replaceAll("-", ""), undefined].map((digits) => ({
                  workspace,
                  prompt: { slug: "prompt", digits }
                }))
                const oldest = "2026-01-01T00:00:00.000Z" as Timestamp
                const page = { page: 50, per_page: 20 }
                const number = 5 as VersionNumber
                const statements: ReadonlyArray<Statement> = [
                  selectPromptsByKey.byId([{ workspace, prompt }]),
                  selectSources.byId([{ workspace, prompt }]),
                  selectPromptsByKey.byId(batch),
                  selectSources.byId(batch),
                  selectPromptsByKey.byName(names),
                  selectSources.byName(names),
                  pages.selectNamed(workspace, { page: 1, per_page: 50 }),
                  ...[prompt, { slug: "prompt", digits: prompt.replaceAll("-", "") }].flatMap((reference) => [
                    pages.selectVersions(workspace, reference, undefined, page),
                    pages.selectVersions(workspace, reference, oldest, page),
                    selectVersion(workspace, reference, number, undefined),
                    selectVersion(workspace, reference, number, oldest)
                  ]),
                  selectKeysByHash([place.key])
                ]
                // The last two statements read the sizes of all contents before the contents.
                const reads = [
                  ...statements.map((statement) => ({ statement, readsPerRow: 1 })),
                  { statement: selectManySources.byId(batch), readsPerRow: 3 },
                  { statement: selectManySources.byName(names), readsPerRow: 3 }
                ]
                for (const { statement, readsPerRow } of reads) {
                  const plan = yield* explain(statement, mode)
                  const context = JSON.stringify({ statement, plan })
                  assertNoScan(plan, context)
                  assertFewBuffers(plan, context, readsPerRow)
                  assert.isAbove(plan[0]!["Actual Rows"], 0)
                }
              })
          )
        }
    })
  })
}
