import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, it, layer } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { countJsonBytes, maxInt32, minInt32, sizes } from "../../../../../src/domain/Sizes.ts"
import * as domain from "../../../../../src/domain/Workspace.ts"
import { migratedDatabase } from "../../../../support/postgres.ts"

const id = (index: number) => `00000000-0000-4000-8000-00000000000${index}`

const setUp = [
  `insert into workspaces (id) values ('${id(1)}')`,
  `insert into users (id, email) values ('${id(2)}', 'ada@example.org')`,
  `insert into api_keys (created_by, key_hash) values ('${id(2)}', decode('${"ab".repeat(32)}', 'hex'))`,
  `insert into folders (workspace_id) values ('${id(1)}')`,
  `insert into tags (workspace_id, name) select '${id(1)}', i::text from generate_series(0, 100) i`,
  `insert into fragments (id, workspace_id) values ('${id(3)}', '${id(1)}')`,
  `insert into prompts (id, workspace_id) values ('${id(4)}', '${id(1)}')`,
  `insert into prompt_versions (prompt_id) values ('${id(4)}')`,
  `insert into prompt_fragments (prompt_id, fragment_id) values ('${id(4)}', '${id(3)}')`
]

const bytes = (count: number) => "é".repeat(count / 2)
const characters = (count: number) => "😀".repeat(count)
const slots = (count: number) => "{{ n }}{{}}{ {x} }\n".repeat(count)
const json = (count: number) => JSON.stringify({ a: "x".repeat(count - 9) })
const nested = (levels: number) => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`

const int = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

/** Generates numbers of all magnitudes. `String` writes some of them with an exponent. */
const numbers = Arbitrary.array(
  Arbitrary.map(Arbitrary.all([int(minInt32, maxInt32), int(-330, 298)]), ([digits, exponent]) =>
    Number(`${digits}e${exponent}`)
  ),
  { maxLength: 4 }
)

/** Generates texts that PostgreSQL can store. */
const texts = Arbitrary.map(Arbitrary.schema(Schema.String), (text) =>
  text.replaceAll("\0", "").toWellFormed()
)

interface Limit {
  readonly make: (size: number) => string
  readonly max: number
  readonly columns: Readonly<Record<string, Schema.Top>>
}

const { WorkspacePrompt, PromptVersion, Fragment, PromptFragment, StoredKey } = domain
const contents = {
  "prompts.current_content": WorkspacePrompt.fields.current_content,
  "prompt_versions.content": PromptVersion.fields.content,
  "fragments.content": Fragment.fields.content
}
const objects = {
  "prompt_versions.metadata": PromptVersion.fields.metadata,
  "prompt_fragments.variable_overrides": PromptFragment.fields.variable_overrides
}

const limits: Readonly<Record<string, Limit>> = {
  content: { make: bytes, max: sizes.contentBytes, columns: contents },
  slots: { make: slots, max: sizes.contentSlots, columns: contents },
  summary: {
    make: bytes,
    max: sizes.summaryBytes,
    columns: {
      "prompts.description": WorkspacePrompt.fields.description,
      "prompt_versions.change_summary": PromptVersion.fields.change_summary
    }
  },
  name: {
    make: characters,
    max: sizes.nameLength,
    columns: {
      "prompts.title": WorkspacePrompt.fields.title,
      "prompts.target_model": WorkspacePrompt.fields.target_model,
      "prompts.intent": WorkspacePrompt.fields.intent,
      "prompt_versions.change_source": PromptVersion.fields.change_source,
      "workspaces.name": domain.Workspace.fields.name,
      "users.email": domain.User.fields.email,
      "api_keys.name": StoredKey.fields.name,
      "folders.name": domain.Folder.fields.name,
      "fragments.name": Fragment.fields.name
    }
  },
  json: { make: json, max: sizes.jsonBytes, columns: objects },
  levels: { make: nested, max: sizes.jsonLevels, columns: objects }
}

const cases = Object.entries(limits).flatMap(([limit, { make, max, columns }]) =>
  Object.entries(columns).map(([column, schema]) => ({ limit, make, max, column, schema }))
)

describe("the sizes of values", () => {
  layer(migratedDatabase, { excludeTestServices: true })((it) => {
    it.effect("the schema accepts the rows that the next tests update", () =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        for (const text of setUp) yield* sql.unsafe(text)
      })
    )

    it.effect.each(cases)(
      "the schema and an import accept a value of $column with the largest allowed $limit, and reject a larger value",
      ({ make, max, column, schema }) =>
        Effect.gen(function* () {
          const sql = yield* PgClient.PgClient
          const [table, name] = column.split(".") as [string, string]
          const decode = Schema.decodeUnknownResult(schema as unknown as Schema.Decoder<unknown>)
          const isJson = name === "metadata" || name === "variable_overrides"
          for (const [size, isAccepted] of [
            [max, true],
            [max + (make === bytes ? 2 : 1), false]
          ] as const) {
            const value = make(size)
            const cast = isJson ? "$1::text::jsonb" : "$1::text"
            const stored = yield* Effect.exit(sql.unsafe(`update ${table} set ${name} = ${cast}`, [value]))
            assert.strictEqual(Exit.isSuccess(stored), isAccepted, `${column} stores ${size}`)
            const imported = decode(isJson ? JSON.parse(value) : value)
            assert.strictEqual(Result.isSuccess(imported), isAccepted, `${column} imports ${size}`)
          }
        })
    )

    it.effect.each([
      {
        table: "prompt_tags",
        max: sizes.promptTags,
        add: (count: number) =>
          `insert into prompt_tags (prompt_id, tag_id) select '${id(4)}', id from tags order by name limit ${count}`
      },
      {
        table: "prompt_fragments",
        max: sizes.promptFragments,
        add: (count: number) =>
          `insert into prompt_fragments (prompt_id, fragment_id) select '${id(4)}', '${id(3)}' from generate_series(1, ${count})`
      }
    ])("the schema accepts $max rows of a prompt in $table, and no more", ({ table, max, add }) =>
      Effect.gen(function* () {
        const sql = yield* PgClient.PgClient
        yield* sql.unsafe(`delete from ${table}`)
        assert.isTrue(Exit.isFailure(yield* Effect.exit(sql.unsafe(add(max + 1)))))
        yield* sql.unsafe(add(max))
        const [other] = yield* sql<{ readonly id: string }>`
          insert into prompts (workspace_id) values (${id(1)}) returning id`
        yield* sql.unsafe(add(1).replace(id(4), other!.id).replace("order by name", "order by name desc"))
        const move = sql.unsafe(`update ${table} set prompt_id = '${id(4)}' where prompt_id = $1`, [
          other!.id
        ])
        assert.isTrue(Exit.isFailure(yield* Effect.exit(move)))
      })
    )

    it.effect.prop(
      "an import counts the bytes of JSON as PostgreSQL does",
      { numbers, names: Arbitrary.array(texts, { maxLength: 4 }) },
      Effect.fnUntraced(function* ({ numbers, names }) {
        const sql = yield* PgClient.PgClient
        const map = Object.fromEntries(
          names.map((name) => [name, { [name]: [...numbers, name, true, null] }])
        )
        const [row] = yield* sql`select octet_length((${JSON.stringify(map)}::text::jsonb)::text) as bytes`
        assert.deepStrictEqual(row, { bytes: countJsonBytes(map) })
      }),
      { arbitrary: { runs: 200 } }
    )
  })
})

describe("the lists of a prompt", () => {
  const binding = { id: id(3), fragment_id: id(3), position: 0, variable_overrides: {} }
  it.each([
    { name: "tags", schema: WorkspacePrompt.fields.tags, item: id(3), max: sizes.promptTags },
    { name: "fragments", schema: WorkspacePrompt.fields.fragments, item: binding, max: sizes.promptFragments }
  ])("an import accepts $max $name of a prompt, and no more", ({ schema, item, max }) => {
    const decode = Schema.decodeUnknownResult(schema as unknown as Schema.Decoder<unknown>)
    assert.isTrue(Result.isSuccess(decode(Array.from({ length: max }, () => item))))
    assert.isTrue(Result.isFailure(decode(Array.from({ length: max + 1 }, () => item))))
  })
})
