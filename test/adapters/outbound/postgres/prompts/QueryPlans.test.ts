import { hash } from "node:crypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import type { Statement } from "../../../../../src/adapters/outbound/postgres/driver/Query.ts"
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
import { migratedDatabase } from "../../../../support/database/server.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const id = <A extends string>(kind: number, index: number): A =>
  `00000000-0000-4000-800${kind}-${index.toString(16).padStart(12, "0")}` as A
const sqlId = (kind: number, index: string) =>
  `('00000000-0000-4000-800${kind}-' || lpad(to_hex(${index}), 12, '0'))::uuid`

/** The workspace that is read, and a folder and 16 prompts of the workspace. */
const workspace = id<WorkspaceId>(1, 1)
const folder_id = id<FolderId>(2, 3)
const ids = Array.from({ length: 16 }, (_, index) => id<PromptId>(5, index + 1))

interface Size {
  /** The number of prompts in the workspace that is read. */
  readonly prompts: number
  /** The number of other workspaces. */
  readonly smallWorkspaces: number
}

/**
 * Returns the statements that fill the workspace with 20 folders and 20 tags. Every second prompt has `tag1`, 1 in
 * 5,000 prompts has `tag0`, and nearly every prompt has one of the other 18 tags. There are also 2,000 empty folders and
 * 2,000 unused tags. If there are small workspaces, PostgreSQL estimates few rows per workspace and per prompt.
 */
const makeLoadStatements = ({ prompts, smallWorkspaces }: Size): ReadonlyArray<string> => [
  // The rows are valid, and the triggers would take most of the time of this test. This setting disables normal triggers
  // but not the triggers that also fire on replicas, so the next statements disable those triggers.
  "set local session_replication_role = replica",
  ...["prompts", "prompt_tags", "prompt_versions", "prompt_fragments"].map(
    (table) => `alter table ${table} disable trigger user`
  ),
  `insert into workspaces (id, tier) values ('${workspace}', 'team')`,
  "insert into users (email) select 'user' || i from generate_series(1, 1000) i",
  `insert into api_keys (workspace_id, created_by, key_hash)
    select '${workspace}', (select id from users limit 1), sha256(i::text::bytea) from generate_series(1, 5000) i`,
  `insert into folders (id, workspace_id) select ${sqlId(2, "i")}, '${workspace}' from generate_series(1, 2020) i`,
  `insert into tags (id, workspace_id, name)
    select ${sqlId(3, "i")}, '${workspace}', 'tag' || i from generate_series(0, 19) i`,
  `insert into fragments (id, workspace_id, content)
    select ${sqlId(4, "i")}, '${workspace}', repeat('x', 200) from generate_series(1, 1000) i`,
  `insert into prompts (id, workspace_id, current_content, prompt_type, folder_id, is_archived, updated_at)
    select ${sqlId(5, "i")}, '${workspace}', repeat('x', 200),
      (array['system', 'user', 'assistant', 'template', 'few-shot', 'chain-of-thought'])[1 + i % 6],
      case when i % 3 > 0 then ${sqlId(2, "i / 3 % 20 + 1")} end,
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
  // These tags come after `prompt_tags`, because the join above would compare each prompt with each tag.
  `insert into tags (id, workspace_id, name)
    select ${sqlId(3, "i")}, '${workspace}', 'unused' || i from generate_series(21, 2020) i`,
  `insert into prompt_versions (prompt_id, version_number, content)
    select ${sqlId(5, "i")}, n, repeat('x', 200) from generate_series(1, 10) i, generate_series(1, 2000) n`,
  `insert into prompt_fragments (prompt_id, fragment_id, position)
    select ${sqlId(5, "i")}, ${sqlId(4, "1 + (i + f) % 1000")}, f
    from generate_series(1, 5000) i, generate_series(1, 3) f`
]

/**
 * Returns the statements that fill workspaces of the tier Free. Each workspace has a key, a folder, the tag `tag1`, a
 * fragment, and two prompts with two versions each.
 */
const makeSmallWorkspaces = (count: number, prompts: number): ReadonlyArray<string> => {
  const each = `from generate_series(1, ${count}) i`
  const eachPrompt = `from generate_series(1, ${2 * count}) p, lateral (values ((p + 1) / 2)) workspace(i)`
  const workspace = sqlId(1, "i + 1")
  const prompt = sqlId(5, `p + ${prompts}`)
  return [
    `insert into workspaces (id) select ${workspace} ${each}`,
    `insert into api_keys (workspace_id, created_by, key_hash)
      select ${workspace}, (select id from users limit 1), sha256(('small' || i)::bytea) ${each}`,
    `insert into folders (id, workspace_id) select ${sqlId(2, "i + 2020")}, ${workspace} ${each}`,
    `insert into tags (id, workspace_id, name) select ${sqlId(3, "i + 2020")}, ${workspace}, 'tag1' ${each}`,
    `insert into fragments (id, workspace_id) select ${sqlId(4, "i + 1000")}, ${workspace} ${each}`,
    `insert into prompts (id, workspace_id, folder_id, updated_at)
      select ${prompt}, ${workspace}, ${sqlId(2, "i + 2020")}, timestamptz '2026-01-01Z' + p * interval '1 minute'
      ${eachPrompt}`,
    `insert into prompt_versions (prompt_id, version_number) select ${prompt}, n ${eachPrompt}, generate_series(1, 2) n`,
    `insert into prompt_fragments (prompt_id, fragment_id) select ${prompt}, ${sqlId(4, "i + 1000")} ${eachPrompt}`
  ]
}

const load = Effect.fnUntraced(function* (size: Size) {
  const sql = yield* PgClient.PgClient
  // With this target, the statistics contain all rows, so the plans do not depend on a random sample.
  const analyze = ["set local default_statistics_target = 1000", "analyze"]
  const run = (statement: string) => sql.unsafe(statement)
  yield* sql.withTransaction(
    Effect.forEach([...makeLoadStatements(size), ...analyze], run, { discard: true })
  )
  yield* sql`vacuum`
})

const loadedDatabase = (size: Size) =>
  Layer.effectDiscard(load(size)).pipe(Layer.provideMerge(migratedDatabase))

interface Plan {
  readonly "Node Type": string
  readonly "Relation Name"?: string
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
  // The plans of PostgreSQL 18 contain fractional numbers of rows. The driver parses these numbers into objects, and the
  // conversion to JSON and back replaces the objects with numbers.
  return listNodes(JSON.parse(JSON.stringify(row!["QUERY PLAN"][0]!.Plan)))
})

/** The filters of lists. A list with a tag reads `prompt_tags`, and any other list reads `prompts`. */
const tagFilters = [{}, { tag: "tag0" }, { tag: "tag1" }, { tag: "tag2" }, { tag: "no such tag" }]
const otherFilters = [{}, { type: "user" }, { folder_id }, { folder_id, type: "user" }] as const
const filters: ReadonlyArray<PromptFilter> = tagFilters.flatMap((tag) =>
  otherFilters.map((other) => ({ ...tag, ...other }))
)

/** Fails if a statement sorts more than 100 rows, or reads more than 100 rows from a table instead of an index. */
const assertNoScan = (plan: ReadonlyArray<Plan>, context: string): void => {
  for (const node of plan) {
    const rows = (node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0)) * node["Actual Loops"]
    const readsTable = node["Relation Name"] !== undefined && node["Node Type"] !== "Index Only Scan"
    // A statement sorts the fetched rows of its page again.
    if (readsTable || node["Node Type"].includes("Sort")) assert.isAtMost(rows, 100, context)
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

for (const size of sizes)
  layer(loadedDatabase(size), { excludeTestServices: true, timeout: "180 seconds" })(
    `with ${size.prompts} prompts beside ${size.smallWorkspaces} small workspaces`,
    (it) => {
      const test = makeTest(it.effect)
      for (const mode of ["custom", "generic"] as const) {
        test(`a list of prompts reads an index in the order of the list, and fetches only the page (${mode} plan)`, function* () {
          for (const filter of filters)
            for (const query of [pages.selectPrompts, pages.selectPromptPage])
              for (const page of [1, 2000]) {
                const plan = yield* explain(query(workspace, filter, { page, per_page: 20 }), mode)
                const context = JSON.stringify({ filter, page, plan })
                assertNoScan(plan, context)
                // For a later page, the statement also reads the skipped rows. For a partial page, the statement reads
                // its part of the index to the end.
                if (query === pages.selectPromptPage && page === 1 && plan[0]!["Actual Rows"] === 20)
                  assertFewBuffers(plan, context)
              }
        })

        test(`a read by id, name, hash or version number uses an index (${mode} plan)`, function* () {
          const prompt = ids[6]!
          const batch = ids.map((prompt) => ({ workspace, prompt }))
          // All prompts have the same slug, and their ids start with the same digits.
          const byName = { slug: "prompt", digits: prompt.replaceAll("-", "") }
          const names = ["00000000", byName.digits, undefined].map((digits) => ({
            workspace,
            prompt: { slug: "prompt", digits }
          }))
          const oldest = "2026-01-01T00:00:00.000Z" as Timestamp
          const page = { page: 50, per_page: 20 }
          const number = 5 as VersionNumber
          const statements: ReadonlyArray<readonly [Statement, readsPerRow?: number]> = [
            [selectPromptsByKey([{ workspace, prompt }])],
            [selectSources([{ workspace, prompt }])],
            [selectPromptsByKey(batch)],
            [selectSources(batch)],
            [selectPromptsByKey(names)],
            [selectSources(names)],
            [pages.selectNamed(workspace, { page: 1, per_page: 50 })],
            ...[prompt, byName].flatMap((reference) => [
              [pages.selectVersions(workspace, reference, undefined, page)] as const,
              [pages.selectVersions(workspace, reference, oldest, page)] as const,
              [selectVersion(workspace, reference, number, undefined)] as const,
              [selectVersion(workspace, reference, number, oldest)] as const
            ]),
            [selectKeysByHash([hash("sha256", "1", "hex") as KeyHash])],
            // These statements read the sizes of all contents before the contents.
            [selectManySources(batch), 3],
            [selectManySources(names), 3]
          ]
          for (const [statement, readsPerRow] of statements) {
            const plan = yield* explain(statement, mode)
            const context = JSON.stringify({ statement, plan })
            assertNoScan(plan, context)
            assertFewBuffers(plan, context, readsPerRow)
            assert.isAbove(plan[0]!["Actual Rows"], 0)
          }
        })
      }
    }
  )
