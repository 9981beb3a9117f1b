import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Cause from "effect/Cause"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as KeyStore from "../../../../src/adapters/outbound/postgres/PostgresKeyStore.ts"
import * as PostgresPromptRepo from "../../../../src/adapters/outbound/postgres/PostgresPromptRepo.ts"
import * as WorkspaceStore from "../../../../src/adapters/outbound/postgres/PostgresWorkspaceStore.ts"
import { LargeReadPolicy, LargeReadDeferred } from "../../../../src/application/LargeReadPolicy.ts"
import * as Keys from "../../../../src/application/ports/KeyStore.ts"
import { type PromptFilter, PromptRepo } from "../../../../src/application/ports/PromptRepo.ts"
import * as Workspaces from "../../../../src/application/ports/WorkspaceStore.ts"
import type { FolderId } from "../../../../src/domain/FolderId.ts"
import type { PromptId, PromptType } from "../../../../src/domain/Prompt.ts"
import * as Resolution from "../../../../src/domain/Resolution.ts"
import { Version, type VersionNumber } from "../../../../src/domain/Version.ts"
import {
  archive,
  folder,
  fragment,
  key,
  newId,
  prompt,
  tag,
  fragmentBinding,
  user,
  toPartStream
} from "../../../support/archives.ts"
import { migratedDatabase } from "../../../support/postgres.ts"

const ports = Layer.mergeAll(PostgresPromptRepo.layer, KeyStore.layer, WorkspaceStore.layer).pipe(
  Layer.provideMerge(migratedDatabase)
)

/** Encodes metadata as a response does. */
const encodeMetadata = Schema.encodeSync(
  Schema.toCodecJson(Schema.Struct({ metadata: Version.fields.metadata }))
)

const everything = { page: 1, per_page: 100 }

/** Imports two workspaces, each with a prompt that has a folder, a tag and a fragment. */
const twoWorkspaces = Effect.gen(function* () {
  const { importWorkspace } = yield* Workspaces.WorkspaceStore
  const make = () => {
    const [drawer, label, snippet] = [folder(), tag("label"), fragment("own")]
    const use1 = fragmentBinding(snippet, 1)
    const one = prompt({ folder_id: drawer.id, tags: [label.id], fragments: [use1], prompt_type: "system" })
    const made = archive({ folders: [drawer], tags: [label], fragments: [snippet], prompts: [one] })
    return { archive: made, id: made.workspace.id, drawer, label, snippet, use: use1, prompt: one }
  }
  const [own, other] = [make(), make()]
  yield* importWorkspace(toPartStream(own.archive))
  yield* importWorkspace(toPartStream(other.archive))
  return { own, other, repo: yield* PromptRepo, sql: yield* PgClient.PgClient }
})

/** Waits until a statement waits for a lock. */
const waitForBlocked = (sql: PgClient.PgClient) =>
  Effect.repeat(
    Effect.andThen(
      Effect.sleep("10 millis"),
      sql`select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
    ),
    { until: (rows) => rows.length > 0, times: 200 }
  )

describe("prompts of rows that other programs wrote", () => {
  layer(ports, { excludeTestServices: true })((it) => {
    it.effect("reads omit fragments, folders and tags of other workspaces", () =>
      Effect.gen(function* () {
        const { own, other, repo, sql } = yield* twoWorkspaces
        yield* sql`insert into prompt_fragments (prompt_id, fragment_id, position)
          values (${own.prompt.id}, ${other.snippet.id}, 0)`
        yield* sql`update prompts set folder_id = ${other.drawer.id} where id = ${own.prompt.id}`
        yield* sql`insert into prompt_tags (prompt_id, tag_id) values (${own.prompt.id}, ${other.label.id})`
        const source = yield* repo.getSource(own.id, own.prompt.id)
        assert.deepStrictEqual(source.fragments, [{ content: "own", variable_overrides: {} }])
        const read = yield* repo.get(own.id, own.prompt.id)
        assert.strictEqual(read.folder_id, null)
        assert.deepStrictEqual(read.tags, [own.label])
        const total = (filter: PromptFilter, workspace = own.id) =>
          Effect.map(repo.list(workspace, filter, everything), ({ items, total }) => [items.length, total])
        assert.deepStrictEqual(yield* total({ folder_id: other.drawer.id }), [0, 0])
        assert.deepStrictEqual(yield* total({ tag: "label" }), [1, 1])
        // The other workspace does not see the prompt that its folder and tag are on.
        assert.deepStrictEqual(yield* total({ folder_id: other.drawer.id }, other.id), [1, 1])
        assert.deepStrictEqual(yield* total({ tag: "label" }, other.id), [1, 1])
      })
    )

    it.effect("getSource returns overrides of any JSON type unchanged, by position, then id", () =>
      Effect.gen(function* () {
        const { own, repo, sql } = yield* twoWorkspaces
        yield* sql`delete from prompt_fragments where prompt_id = ${own.prompt.id}`
        const overrides = [[1, "two"], null, "text", 3, true, { a: { b: null }, "": "" }]
        const ids = overrides.map(() => newId<string>()).sort()
        for (const index of [3, 5, 0, 2, 4, 1]) {
          yield* sql`insert into prompt_fragments (id, prompt_id, fragment_id, position, variable_overrides)
            values (${ids[index]}, ${own.prompt.id}, ${own.snippet.id}, 7, ${JSON.stringify(overrides[index])})`
        }
        yield* sql`insert into prompt_fragments (prompt_id, fragment_id, position)
          values (${own.prompt.id}, ${own.snippet.id}, -1)`
        const { fragments } = yield* repo.getSource(own.id, own.prompt.id)
        assert.deepStrictEqual(
          fragments.map(({ variable_overrides }) => variable_overrides),
          [{}, ...overrides]
        )
      })
    )

    it.effect("prompts are the same whether they are read in a batch or, if large, alone", () =>
      Effect.gen(function* () {
        const { own, repo, sql } = yield* twoWorkspaces
        const sizes = [0, 262_000, 262_200, 300_000, 1_000_000]
        for (const [column, size] of [
          ...sizes.map((size) => ["current_content", size] as const),
          ...(["title", "description", "target_model", "intent"] as const).map(
            (name) => [name, 300_000] as const
          )
        ]) {
          yield* sql`update prompts set ${sql(column)} = ${"é".repeat(size / 2)} where id = ${own.prompt.id}`
          const read = yield* repo.get(own.id, own.prompt.id)
          assert.strictEqual(read[column].length, size / 2)
          assert.deepStrictEqual(read.tags, [own.label])
          const source = yield* repo.getSource(own.id, own.prompt.id)
          assert.strictEqual(source.current_content, read.current_content)
          assert.deepStrictEqual(source.fragments, [{ content: "own", variable_overrides: {} }])
        }
      })
    )

    it.effect("getVersion returns large content, summary or metadata unchanged", () =>
      Effect.gen(function* () {
        const { own, repo, sql } = yield* twoWorkspaces
        const text = "é".repeat(150_000)
        // Random digits, which do not compress.
        const list = Array.from({ length: 20_000 }, () => crypto.randomUUID())
        yield* sql`insert into prompt_versions (prompt_id, version_number, content, change_summary, metadata) values
          (${own.prompt.id}, 3001, ${text}, '', '{}'),
          (${own.prompt.id}, 3002, '', ${text}, '{}'),
          (${own.prompt.id}, 3003, '', '', ${JSON.stringify({ list })}::text::jsonb)`
        const versionOf = (number: number) =>
          repo.getVersion(own.id, own.prompt.id, number as VersionNumber, undefined)
        assert.strictEqual((yield* versionOf(3001)).content, text)
        assert.strictEqual((yield* versionOf(3002)).change_summary, text)
        assert.deepStrictEqual((yield* versionOf(3003)).metadata, { list })
      })
    )

    it.effect(
      "with the policy defer, every read dies with LargeReadDeferred if its rows are large and succeeds if they are small",
      () =>
        Effect.gen(function* () {
          const { own, repo, sql } = yield* twoWorkspaces
          const [id, first] = [own.prompt.id, 1 as VersionNumber]
          yield* sql`insert into prompt_versions (prompt_id, version_number, content) values (${id}, 1, 'small')`
          const reads: ReadonlyArray<readonly [string, Effect.Effect<unknown, unknown>]> = [
            ["get", repo.get(own.id, id)],
            ["getSource", repo.getSource(own.id, id)],
            ["getVersion", repo.getVersion(own.id, id, first, undefined)],
            ["list", repo.list(own.id, {}, everything)],
            ["listPage", repo.listPage(own.id, {}, everything)],
            ["listVersions", repo.listVersions(own.id, id, undefined, everything)]
          ]
          /** Reads everything under each policy. Returns the names of the reads that were deferred. */
          const compare = Effect.gen(function* () {
            const deferred: Array<string> = []
            for (const [name, read] of reads) {
              const whole = yield* read
              assert.deepStrictEqual(yield* Effect.provideService(read, LargeReadPolicy, "expect"), whole)
              const exit = yield* Effect.exit(Effect.provideService(read, LargeReadPolicy, "defer"))
              if (Exit.isSuccess(exit)) assert.deepStrictEqual(exit.value, whole)
              else {
                assert.instanceOf(Cause.squash(exit.cause), LargeReadDeferred)
                deferred.push(name)
              }
            }
            return deferred
          })
          const large = "é".repeat(150_000)
          assert.deepStrictEqual(yield* compare, [])
          yield* sql`update prompts set current_content = ${large} where id = ${id}`
          assert.deepStrictEqual(yield* compare, ["get", "getSource"])
          yield* sql`update prompts set current_content = '', description = ${large} where id = ${id}`
          assert.deepStrictEqual(yield* compare, ["get", "list", "listPage"])
          yield* sql`update prompts set description = '' where id = ${id}`
          yield* sql`update prompt_versions set change_summary = ${large} where prompt_id = ${id}`
          assert.deepStrictEqual(yield* compare, ["getVersion", "listVersions"])
        })
    )

    it.effect("a page is large if its rows are large together, and fails above 64 MiB", () =>
      Effect.gen(function* () {
        const { own, repo, sql } = yield* twoWorkspaces
        const fill = (count: number, size: number) => sql`
          insert into prompts (workspace_id, title, description)
          select ${own.id}, 'Filled', repeat('x', ${size}::int) from generate_series(1, ${count}::int)`
        const defer = (per_page: number) =>
          Effect.exit(
            Effect.provideService(repo.list(own.id, {}, { page: 1, per_page }), LargeReadPolicy, "defer")
          )
        yield* fill(9, 30_000)
        assert.isTrue(Exit.isSuccess(yield* defer(8)))
        assert.isTrue(Exit.isFailure(yield* defer(9)))
        assert.strictEqual((yield* repo.list(own.id, {}, everything)).items.length, 10)
        yield* fill(5, 16_000_000)
        assert.strictEqual((yield* repo.list(own.id, {}, { page: 1, per_page: 4 })).items.length, 4)
        const exit = yield* Effect.exit(repo.list(own.id, {}, everything))
        assert.isTrue(Exit.isFailure(exit) && String(Cause.squash(exit.cause)).includes("64 MiB"))
      })
    )

    it.effect(
      "getSource fails with ResolvedTooLarge exactly when no binding can bring the content to 8 MiB; otherwise resolve decides",
      () =>
        Effect.gen(function* () {
          const { own, repo, sql } = yield* twoWorkspaces
          const MiB = 1024 * 1024
          const outcome = Effect.fnUntraced(function* (content: number, size: number, overrides: object) {
            yield* sql`update prompts set current_content = ${"x".repeat(content)} where id = ${own.prompt.id}`
            yield* sql`update fragments set content = ${"{{a}}".padEnd(size, "x")} where id = ${own.snippet.id}`
            yield* sql`update prompt_fragments set variable_overrides = ${JSON.stringify(overrides)}::text::jsonb
            where prompt_id = ${own.prompt.id}`
            const read = yield* Effect.result(repo.getSource(own.id, own.prompt.id))
            return read._tag === "Success" ? Resolution.resolve(read.success)._tag : read.failure._tag
          })
          const large = 8 * MiB - 2 - 5
          assert.strictEqual(yield* outcome(large, 5, {}), "Success")
          assert.strictEqual(yield* outcome(large + 1, 5, {}), "ResolvedTooLarge")
          // Fits because a binding shortens the fragment.
          assert.strictEqual(yield* outcome(large + 1, 5, { a: "1234" }), "Success")
          assert.strictEqual(yield* outcome(8 * MiB - 2, 5, { a: "" }), "Success")
          assert.strictEqual(yield* outcome(8 * MiB - 1, 5, { a: "" }), "ResolvedTooLarge")
          // The binding does not shorten the fragment, which is known only once the prompt is resolved.
          assert.strictEqual(yield* outcome(large + 1, 5, { a: "12345" }), "Failure")
          yield* sql`delete from prompt_fragments where prompt_id = ${own.prompt.id}`
          assert.strictEqual(yield* outcome(8 * MiB, 0, {}), "Success")
          assert.strictEqual(yield* outcome(8 * MiB + 1, 0, {}), "ResolvedTooLarge")
        })
    )

    it.effect("getVersion omits a parent that belongs to another prompt", () =>
      Effect.gen(function* () {
        const { own, other, repo, sql } = yield* twoWorkspaces
        const [theirs, first, second] = [newId<string>(), newId<string>(), newId<string>()]
        yield* sql`insert into prompt_versions (id, prompt_id) values (${theirs}, ${other.prompt.id})`
        yield* sql`insert into prompt_versions (id, prompt_id, version_number, parent_version_id)
          values (${first}, ${own.prompt.id}, 1001, ${theirs}), (${second}, ${own.prompt.id}, 1002, ${first})`
        const parentOf = (number: number) =>
          Effect.map(
            repo.getVersion(own.id, own.prompt.id, number as VersionNumber, undefined),
            ({ parent_version_id }) => parent_version_id
          )
        assert.deepStrictEqual<ReadonlyArray<string | null>>(
          [yield* parentOf(1001), yield* parentOf(1002)],
          [null, first]
        )
      })
    )

    it.effect("all metadata that the table can store can be encoded", () =>
      Effect.gen(function* () {
        const { own, repo, sql } = yield* twoWorkspaces
        const deep = `{"a":${"[".repeat(99)}0${"]".repeat(99)}}`
        const texts = ['{"a":1e400,"b":[-1e400,{"__proto__":{"c":1}}]}', deep, "{}"]
        const huge = `1${"0".repeat(400)}`
        const expected = [`{"a":${huge},"b":[-${huge},{"__proto__":{"c":1}}]}`, deep, "{}"]
        for (const [index, text] of texts.entries()) {
          const number = 2001 + index
          yield* sql.unsafe(
            "insert into prompt_versions (prompt_id, version_number, metadata) values ($1, $2, $3::text::jsonb)",
            [own.prompt.id, number, text]
          )
          const version = yield* repo.getVersion(own.id, own.prompt.id, number as VersionNumber, undefined)
          assert.strictEqual(JSON.stringify(encodeMetadata(version)), `{"metadata":${expected[index]}}`)
        }
      })
    )

    it.effect("an unknown tier is returned as stored, and a tag that cannot exist lists nothing", () =>
      Effect.gen(function* () {
        const { own, repo, sql } = yield* twoWorkspaces
        const { importWorkspace } = yield* Workspaces.WorkspaceStore
        const { find } = yield* Keys.KeyStore
        const owner = user()
        const { stored } = key(own.id, owner)
        yield* importWorkspace(toPartStream({ ...own.archive, users: [owner], api_keys: [stored] }))
        yield* sql`update workspaces set tier = 'enterprise' where id = ${own.id}`
        assert.deepStrictEqual((yield* find(stored.key_hash)).workspace, {
          id: own.id,
          tier: "enterprise",
          billing_status: "active"
        })
        const impossibleTags = [
          "\0",
          "label\0",
          "\ud800",
          "label\udfff",
          "",
          "x".repeat(257),
          "😀".repeat(4000)
        ]
        for (const tag of impossibleTags) {
          for (const filter of [{ tag }, { tag, type: "system" as const, folder_id: own.drawer.id }]) {
            assert.deepStrictEqual(yield* repo.list(own.id, filter, everything), { items: [], total: 0 })
          }
        }
      })
    )

    it.effect("lists by tag are current after every change of prompt, tag or folder", () =>
      Effect.gen(function* () {
        const { own, other, repo, sql } = yield* twoWorkspaces
        const listed = Effect.fnUntraced(function* (filter: Omit<PromptFilter, "tag">, workspace = own.id) {
          const tagged = yield* repo.list(workspace, { ...filter, tag: "label" }, everything)
          const untagged = yield* repo.list(workspace, filter, everything)
          assert.deepStrictEqual(tagged, untagged)
          return tagged.items.map(({ title, updated_at }) => [title, updated_at])
        })
        const id = own.prompt.id
        const titleAt = (time: string) => [[own.prompt.title, time]]
        assert.deepStrictEqual(yield* listed({}), titleAt(own.prompt.updated_at))
        yield* sql`update prompts set updated_at = '2027-01-01Z' where id = ${id}`
        assert.deepStrictEqual(yield* listed({}), titleAt("2027-01-01T00:00:00.000Z"))
        assert.deepStrictEqual(yield* listed({ type: "user" }), [])
        yield* sql`update prompts set prompt_type = 'user' where id = ${id}`
        assert.deepStrictEqual(yield* listed({ type: "user" }), titleAt("2027-01-01T00:00:00.000Z"))
        yield* sql`delete from folders where id = ${own.drawer.id}`
        assert.deepStrictEqual(yield* listed({ folder_id: own.drawer.id as FolderId }), [])
        yield* sql`update prompts set is_archived = true where id = ${id}`
        assert.deepStrictEqual(yield* listed({}), [])
        yield* sql`update prompts set is_archived = false where id = ${id}`
        assert.deepStrictEqual(yield* listed({}), titleAt("2027-01-01T00:00:00.000Z"))
        // A moved prompt is not listed by a tag of its former workspace.
        yield* sql`update prompts set workspace_id = ${other.id} where id = ${id}`
        assert.deepStrictEqual(yield* listed({}), [])
        yield* sql`delete from tags where id = ${other.label.id}`
        yield* sql`update tags set workspace_id = ${other.id} where id = ${own.label.id}`
        const { items } = yield* repo.list(other.id, { tag: "label" }, everything)
        assert.deepStrictEqual(
          items.map(({ id }) => id),
          [id]
        )
      })
    )

    it.effect(
      "are listed by tag with the current values when the tag is added while the prompt changes",
      () =>
        Effect.gen(function* () {
          const { own, repo, sql } = yield* twoWorkspaces
          yield* sql`delete from prompt_tags where prompt_id = ${own.prompt.id}`
          const updated = yield* Deferred.make<void>()
          const update = Effect.gen(function* () {
            yield* sql`update prompts set updated_at = '2027-01-01Z' where id = ${own.prompt.id}`
            yield* Deferred.succeed(updated, undefined)
            yield* waitForBlocked(sql)
          })
          const tagging = Effect.andThen(
            Deferred.await(updated),
            sql`insert into prompt_tags (prompt_id, tag_id) values (${own.prompt.id}, ${own.label.id})`
          )
          yield* Effect.all([sql.withTransaction(update), tagging], { concurrency: 2 })
          const { items } = yield* repo.list(own.id, { tag: "label" }, everything)
          assert.deepStrictEqual(
            items.map(({ updated_at }) => updated_at),
            ["2027-01-01T00:00:00.000Z"]
          )
        })
    )

    it.effect("list returns a page and a total of the same snapshot", () =>
      Effect.gen(function* () {
        const { own, repo, sql } = yield* twoWorkspaces
        // Each odd write adds 99 prompts at once, each even one deletes them.
        const toggle = sql`insert into prompts (workspace_id, title)
            select ${own.id}, 'many' from generate_series(1, 99)`.pipe(
          Effect.andThen(sql`delete from prompts where workspace_id = ${own.id} and title = 'many'`)
        )
        const writer = yield* Effect.forkChild(Effect.repeat(toggle, { times: 30 }))
        const totals = new Set<number>()
        while (writer.pollUnsafe() === undefined) {
          const { items, total } = yield* repo.list(own.id, {}, everything)
          assert.strictEqual(items.length, total)
          totals.add(total)
        }
        yield* Fiber.join(writer)
        assert.deepStrictEqual([...totals].sort(), [1, 100])
      })
    )

    it.effect(
      "list returns each prompt of a large list on exactly one page, in order; pages past the end have the total",
      () =>
        Effect.gen(function* () {
          const { other, repo, sql } = yield* twoWorkspaces
          yield* sql`insert into prompts (workspace_id, prompt_type, updated_at)
          select ${other.id}, 'few-shot', timestamptz '2026-01-01Z' + (i % 7) * interval '1 ms'
          from generate_series(1, 250) i`
          const expected = yield* sql<{ readonly id: PromptId }>`select id from prompts
          where workspace_id = ${other.id} and prompt_type = 'few-shot' order by updated_at desc, id desc`
          const filter = { type: "few-shot" as PromptType }
          const seen: Array<PromptId> = []
          for (const page of [1, 2, 3, 4, 5, 6, 7]) {
            const { items, total } = yield* repo.list(other.id, filter, { page, per_page: 40 })
            assert.strictEqual(total, 250)
            seen.push(...items.map(({ id }) => id))
          }
          assert.deepStrictEqual(
            seen,
            expected.map(({ id }) => id)
          )
          for (const page of [8, 2 ** 31, Number.MAX_SAFE_INTEGER]) {
            const past = yield* repo.list(other.id, filter, { page, per_page: 100 })
            assert.deepStrictEqual(past, { items: [], total: 250 })
          }
        })
    )
  })
})
