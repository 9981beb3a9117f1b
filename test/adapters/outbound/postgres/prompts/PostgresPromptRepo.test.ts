import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import * as PostgresPromptRepo from "../../../../../src/adapters/outbound/postgres/prompts/PostgresPromptRepo.ts"
import { type PromptFilter, PromptRepo } from "../../../../../src/application/ports/PromptRepo.ts"
import * as Resolution from "../../../../../src/domain/Resolution.ts"
import { Version, type VersionNumber } from "../../../../../src/domain/Version.ts"
import { oneOfEach } from "../../../../contracts/WorkspaceStore/support.ts"
import { loadArchive } from "../../../../support/archives.ts"
import { migratedDatabase } from "../../../../support/database/server.ts"
import { workspaceStore } from "../../../../support/database/workspaceStore.ts"
import { makeTest } from "../../../../support/makeTest.ts"

const ports = Layer.mergeAll(PostgresPromptRepo.layer, workspaceStore).pipe(
  Layer.provideMerge(migratedDatabase)
)

/** Encodes the metadata of a response. */
const encodeMetadata = Schema.encodeSync(
  Schema.toCodecJson(Schema.Struct({ metadata: Version.fields.metadata }))
)

const everything = { page: 1, per_page: 100 }

/** Imports two workspaces, each with a prompt that has a folder, the tag "label" and a fragment. */
const twoWorkspaces = Effect.gen(function* () {
  const make = () => {
    const archive = oneOfEach()
    const [drawer, label, snippet] = [archive.folders[0]!, archive.tags[0]!, archive.fragments[0]!]
    return { archive, id: archive.workspace.id, drawer, label, snippet, prompt: archive.prompts[0]! }
  }
  const [own, other] = [make(), make()]
  for (const { archive } of [own, other]) yield* loadArchive(archive)
  return { own, other, repo: yield* PromptRepo, sql: yield* PgClient.PgClient }
})

layer(ports, { excludeTestServices: true })((it) => {
  const test = makeTest(it.effect)
  test("reads omit fragments, folders, tags and parent versions of other workspaces", function* () {
    const { own, other, repo, sql } = yield* twoWorkspaces
    yield* sql`insert into prompt_fragments (prompt_id, fragment_id, position)
        values (${own.prompt.id}, ${other.snippet.id}, 0)`
    yield* sql`update prompts set folder_id = ${other.drawer.id} where id = ${own.prompt.id}`
    yield* sql`insert into prompt_tags (prompt_id, tag_id) values (${own.prompt.id}, ${other.label.id})`
    yield* sql`insert into prompt_versions (prompt_id, version_number, parent_version_id)
        values (${own.prompt.id}, 1001, ${other.prompt.versions[0]!.id})`
    const number = 1001 as VersionNumber
    const version = yield* repo.getVersion(own.id, own.prompt.id, number, undefined)
    assert.strictEqual(version.parent_version_id, null)
    const source = yield* repo.getSource(own.id, own.prompt.id)
    assert.deepStrictEqual(source.fragments, [{ content: own.snippet.content, variable_overrides: {} }])
    const read = yield* repo.get(own.id, own.prompt.id)
    assert.strictEqual(read.folder_id, null)
    assert.deepStrictEqual(read.tags, [own.label])
    const total = (filter: PromptFilter, workspace = own.id) =>
      Effect.map(repo.list(workspace, filter, everything), ({ items, total }) => [items.length, total])
    assert.deepStrictEqual(yield* total({ folder_id: other.drawer.id }), [0, 0])
    assert.deepStrictEqual(yield* total({ tag: "label" }), [1, 1])
    // Lists of the other workspace omit the prompt of `own`, although the prompt has a folder and a tag of `other`.
    assert.deepStrictEqual(yield* total({ folder_id: other.drawer.id }, other.id), [1, 1])
    assert.deepStrictEqual(yield* total({ tag: "label" }, other.id), [1, 1])
  })

  test("getSource returns overrides of any JSON type unchanged", function* () {
    const { own, repo, sql } = yield* twoWorkspaces
    const overrides = [[1, "two"], null, "text", 3, true, { a: { b: null }, "": "" }]
    for (const [index, value] of overrides.entries())
      yield* sql`insert into prompt_fragments (prompt_id, fragment_id, position, variable_overrides)
          values (${own.prompt.id}, ${own.snippet.id}, ${index + 2}, ${JSON.stringify(value)})`
    const { fragments } = yield* repo.getSource(own.id, own.prompt.id)
    assert.deepStrictEqual(
      fragments.map(({ variable_overrides }) => variable_overrides),
      [{}, ...overrides]
    )
  })

  test("if the contents and overrides together exceed 2 MiB, getSource fails without reading them", function* () {
    const { own, repo, sql } = yield* twoWorkspaces
    const outcome = Effect.fnUntraced(function* (content: number) {
      yield* sql`update prompts set current_content = ${"x".repeat(content)} where id = ${own.prompt.id}`
      const read = yield* Effect.result(repo.getSource(own.id, own.prompt.id))
      return read._tag === "Success" ? Resolution.resolve(read.success)._tag : read.failure._tag
    })
    yield* sql`update fragments set content = repeat('x', 1048576) where id = ${own.snippet.id}`
    assert.strictEqual(yield* outcome(0), "Failure")
    yield* sql`insert into prompt_fragments (prompt_id, fragment_id) values (${own.prompt.id}, ${own.snippet.id})`
    yield* sql`update prompt_fragments set variable_overrides = '{}' where prompt_id = ${own.prompt.id}`
    const overrides = 2 * "{}".length
    yield* sql`update fragments set content = repeat('x', ${1048576 - overrides / 2}) where id = ${own.snippet.id}`
    assert.strictEqual(yield* outcome(0), "Failure")
    assert.strictEqual(yield* outcome(1), "ResolvedTooLarge")
    const added = { name: "x" }
    yield* sql`update prompt_fragments set variable_overrides = ${JSON.stringify(added)}::jsonb where prompt_id = ${own.prompt.id}`
    assert.strictEqual(yield* outcome(0), "ResolvedTooLarge")
    yield* sql`delete from prompt_fragments where prompt_id = ${own.prompt.id}`
    assert.strictEqual(yield* outcome(1048576), "Success")
  })

  test("the response schema can encode all metadata that the table can store", function* () {
    const { own, repo, sql } = yield* twoWorkspaces
    const deep = `{"a":${"[".repeat(99)}0${"]".repeat(99)}}`
    const texts = ['{"a":1e400,"b":[-1e400,{"__proto__":{"c":1}}]}', deep, "{}"]
    // JavaScript reads 1e400 as Infinity, which JSON cannot represent.
    const expected = ['{"a":null,"b":[null,{"__proto__":{"c":1}}]}', deep, "{}"]
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

  test("list returns a page and a total of the same snapshot", function* () {
    const { own, repo, sql } = yield* twoWorkspaces
    // `toggle` adds 99 prompts in one statement and then deletes them in another statement, so a snapshot has 1 or
    // 100 prompts.
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
})
