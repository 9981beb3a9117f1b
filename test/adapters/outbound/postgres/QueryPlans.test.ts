import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Statement } from "../../../../src/adapters/outbound/postgres/connection/Query.ts"
import { Database } from "../../../../src/adapters/outbound/postgres/Database.ts"
import { findKeys } from "../../../../src/adapters/outbound/postgres/KeyQueries.ts"
import * as queries from "../../../../src/adapters/outbound/postgres/PromptQueries.ts"
import type { PromptFilter } from "../../../../src/application/ports/PromptRepo.ts"
import type { KeyHash } from "../../../../src/domain/ApiKey.ts"
import type { FolderId } from "../../../../src/domain/FolderId.ts"
import type { PromptId } from "../../../../src/domain/Prompt.ts"
import type { Timestamp } from "../../../../src/domain/Timestamp.ts"
import type { VersionNumber } from "../../../../src/domain/Version.ts"
import type { WorkspaceId } from "../../../../src/domain/WorkspaceId.ts"
import { migratedDatabase, noPostgres } from "../../../support/postgres.ts"

const prompts = 100_000
const id = <A extends string>(kind: number, index: number): A =>
  `00000000-0000-4000-800${kind}-${index.toString(16).padStart(12, "0")}` as A
const sqlId = (kind: number, index: string) =>
  `('00000000-0000-4000-800${kind}-' || lpad(to_hex(${index}), 12, '0'))::uuid`
const [home, other] = [id<WorkspaceId>(1, 1), id<WorkspaceId>(1, 2)]
const selectWorkspace = (index: string, count: number) =>
  `case when ${index} <= ${count} then '${home}'::uuid else '${other}' end`

/** Two workspaces: one with a hundred thousand prompts, in 20 folders, with 20 tags, one of them on every second prompt. */
const loadStatements = [
  `insert into workspaces (id) values ('${home}'), ('${other}')`,
  "insert into users (email) select 'user' || i from generate_series(1, 1000) i",
  `insert into api_keys (workspace_id, created_by, key_hash)
    select '${home}', (select id from users limit 1), sha256(i::text::bytea) from generate_series(1, 5000) i`,
  `insert into folders (id, workspace_id)
    select ${sqlId(2, "i")}, ${selectWorkspace("i", 20)} from generate_series(1, 40) i`,
  `insert into tags (id, workspace_id, name)
    select ${sqlId(3, "i")}, ${selectWorkspace("i", 20)}, 'tag' || i % 20 from generate_series(1, 40) i`,
  `insert into fragments (id, workspace_id, content)
    select ${sqlId(4, "i")}, ${selectWorkspace("i", 1000)}, repeat('x', 200) from generate_series(1, 1200) i`,
  `insert into prompts (id, workspace_id, current_content, prompt_type, folder_id, is_archived, updated_at)
    select ${sqlId(5, "i")}, ${selectWorkspace("i", prompts)}, repeat('x', 200),
      (array['system', 'user', 'assistant', 'template', 'few-shot', 'chain-of-thought'])[1 + i % 6],
      case when i % 3 > 0 then ${sqlId(2, `i / 3 % 20 + ${`case when i <= ${prompts} then 1 else 21 end`}`)} end,
      i % 50 = 0, timestamptz '2026-01-01Z' + (i * 7919 % ${prompts}) * interval '1 minute'
    from generate_series(1, ${prompts} + 5000) i`,
  // Rows of tags as their trigger would write them; the trigger would take most of this test's time.
  "alter table prompt_tags disable trigger user",
  `insert into prompt_tags (prompt_id, tag_id, workspace_id, listed_at, prompt_type, folder_id)
    select p.id, t.id, p.workspace_id, case when not p.is_archived then p.updated_at end, p.prompt_type, p.folder_id
    from generate_series(1, ${prompts}) i join prompts p on p.id = ${sqlId(5, "i")}
    join tags t on t.workspace_id = p.workspace_id
      and (t.name = 'tag' || 2 + i % 18 or (t.name = 'tag1' and i % 2 = 0) or (t.name = 'tag0' and i % 5000 = 1))`,
  "alter table prompt_tags enable trigger user",
  `insert into prompt_versions (prompt_id, version_number, content)
    select ${sqlId(5, "1 + i % 10")}, 1 + i / 10, repeat('x', 200) from generate_series(0, 19999) i`,
  `insert into prompt_fragments (prompt_id, fragment_id, position)
    select ${sqlId(5, "i")}, ${sqlId(4, "1 + (i + f) % 1000")}, f from generate_series(1, 5000) i, generate_series(1, 3) f`
]

const loadedDatabase = Layer.effectDiscard(
  Effect.gen(function* () {
    const sql = yield* PgClient.PgClient
    const { transact } = yield* Database
    yield* transact(Effect.forEach(loadStatements, (statement) => sql.unsafe(statement), { discard: true }))
    yield* sql`vacuum analyze`
  })
).pipe(Layer.provideMerge(migratedDatabase))

interface Plan {
  readonly "Node Type": string
  readonly "Relation Name"?: string
  readonly "Index Name"?: string
  readonly "Actual Rows": number
  readonly "Actual Loops": number
  readonly Plans?: ReadonlyArray<Plan>
}

const listNodes = (plan: Plan): ReadonlyArray<Plan> => [plan, ...(plan.Plans ?? []).flatMap(listNodes)]

const quote = (value: unknown): string => `'${String(value).replaceAll("'", "''")}'`

/** Returns the nodes of a statement's plan: the custom plan for its values, or the generic plan of a prepared statement. */
const explain = Effect.fnUntraced(function* ({ text, params }: Statement, mode: "custom" | "generic") {
  const sql = yield* PgClient.PgClient
  const values = params.length === 0 ? "" : `(${params.map(quote).join(", ")})`
  const [row] = yield* sql.withTransaction(
    Effect.gen(function* () {
      yield* sql.unsafe(`set local plan_cache_mode = force_${mode}_plan`)
      yield* sql.unsafe(`prepare explained as ${text}`)
      const rows = yield* sql.unsafe<{ readonly "QUERY PLAN": ReadonlyArray<{ readonly Plan: Plan }> }>(
        `explain (analyze, format json) execute explained${values}`
      )
      yield* sql.unsafe("deallocate explained")
      return rows
    })
  )
  return listNodes(row!["QUERY PLAN"][0]!.Plan)
})

const folder_id = id<FolderId>(2, 3)
const filters: ReadonlyArray<readonly [filter: PromptFilter, index: string]> = [
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

const assertNoScan = (plan: ReadonlyArray<Plan>, context: string): void => {
  for (const node of plan) {
    if (node["Node Type"] === "Seq Scan") assert.notInclude(largeTables, node["Relation Name"], context)
    // The rows of the page are sorted again after they were fetched.
    if (node["Node Type"].includes("Sort"))
      assert.isAtMost(node["Actual Rows"] * node["Actual Loops"], 100, context)
    if (node["Node Type"] === "Index Scan")
      assert.isAtMost(node["Actual Rows"] * node["Actual Loops"], 100, context)
  }
}

describe.skipIf(noPostgres !== undefined)("plans with 100,000 prompts", () => {
  layer(loadedDatabase, { excludeTestServices: true, timeout: "180 seconds" })((it) => {
    for (const mode of ["custom", "generic"] as const) {
      it.effect(
        `count and skip with one index, without a sort of the workspace, and fetch only the page (${mode} plan)`,
        () =>
          Effect.gen(function* () {
            for (const [filter, index] of filters) {
              for (const [query, page] of [queries.listPrompts, queries.listPromptPage].flatMap((query) =>
                [1, 50, 2000].map((page) => [query, page] as const)
              )) {
                const plan = yield* explain(query(home, filter, { page, per_page: 20 }), mode)
                const context = JSON.stringify({ filter, page, plan })
                assertNoScan(plan, context)
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

      it.effect(`find a prompt, source, history, version or key by index (${mode} plan)`, () =>
        Effect.gen(function* () {
          const prompt = id<PromptId>(5, 7)
          const oldest = "2026-01-01T00:00:00.000Z" as Timestamp
          const hash = "6b86b273ff34fce19d6b804eff5a3f5747ada4eaa22f1d49c01e52ddb7875b4b" as KeyHash
          const page = { page: 50, per_page: 20 }
          const statements: ReadonlyArray<Statement> = [
            queries.getPrompts([{ workspace: home, id: prompt }]),
            queries.getSources([{ workspace: home, id: prompt }]),
            queries.getPrompts([{ workspace: home, id: prompt }], queries.unbounded),
            queries.getSources([{ workspace: home, id: prompt }], queries.unbounded),
            queries.getVersion(home, prompt, 5 as VersionNumber, oldest, queries.unbounded),
            queries.listVersions(home, prompt, undefined, page),
            queries.listVersions(home, prompt, oldest, page),
            queries.getVersion(home, prompt, 5 as VersionNumber, undefined),
            queries.getVersion(home, prompt, 5 as VersionNumber, oldest),
            findKeys([hash])
          ]
          for (const statement of statements) {
            const plan = yield* explain(statement, mode)
            assertNoScan(plan, JSON.stringify({ statement, plan }))
            assert.isAbove(plan[0]!["Actual Rows"], 0)
          }
        })
      )
    }
  })
})
