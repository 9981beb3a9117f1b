import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { countJsonBytes, maxInt32, minInt32, sizes } from "../../../../../src/domain/Sizes.ts"
import * as domain from "../../../../../src/domain/Workspace.ts"
import { texts } from "../../../../support/archives.ts"
import { migratedDatabase } from "../../../../support/database/server.ts"
import { makeTest } from "../../../../support/makeTest.ts"

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

const filledDatabase = Layer.effectDiscard(
  Effect.flatMap(PgClient.PgClient, (sql) => Effect.forEach(setUp, (text) => sql.unsafe(text)))
).pipe(Layer.provideMerge(migratedDatabase))

const bytes = (count: number) => "é".repeat(count / 2)
const characters = (count: number) => "😀".repeat(count)
const slots = (count: number) => "{{ n }}{{}}{ {x} }\n".repeat(count)
const json = (count: number) => JSON.stringify({ a: "x".repeat(count - 9) })
const nested = (levels: number) => `{"a":${"[".repeat(levels - 1)}${"]".repeat(levels - 1)}}`

const int = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })))

/** Generates numbers of all magnitudes. `String` writes some of the numbers with an exponent. */
const numbers = Arbitrary.array(
  Arbitrary.map(Arbitrary.all([int(minInt32, maxInt32), int(-330, 298)]), ([digits, exponent]) =>
    Number(`${digits}e${exponent}`)
  ),
  { maxLength: 4 }
)

/** The schemas of the tables' rows. */
const schemas: Readonly<Record<string, { readonly fields: object }>> = {
  workspaces: domain.Workspace,
  users: domain.User,
  api_keys: domain.StoredKey,
  folders: domain.Folder,
  fragments: domain.Fragment,
  prompts: domain.WorkspacePrompt,
  prompt_versions: domain.PromptVersion,
  prompt_fragments: domain.PromptFragment
}
const contents = ["prompts.current_content", "prompt_versions.content", "fragments.content"]
const objects = ["prompt_versions.metadata", "prompt_fragments.variable_overrides"]
const names = [
  ...["prompts.title", "prompts.target_model", "prompts.intent", "prompt_versions.change_source"],
  ...["workspaces.name", "users.email", "api_keys.name", "folders.name", "fragments.name"]
]

/** For each limit: its unit, a function that makes a value of a given size, the largest size, and the columns. */
const limits = [
  ["bytes", bytes, sizes.contentBytes, contents],
  ["slots", slots, sizes.contentSlots, contents],
  ["bytes", bytes, sizes.summaryBytes, ["prompts.description", "prompt_versions.change_summary"]],
  ["characters", characters, sizes.nameLength, names],
  ["bytes", json, sizes.jsonBytes, objects],
  ["levels of JSON", nested, sizes.jsonLevels, objects]
] as const

const { tags, fragments } = domain.WorkspacePrompt.fields

/** Decodes a value as an import does. */
const decode = (schema: Schema.Top, value: unknown) =>
  Schema.decodeUnknownResult(schema as unknown as Schema.Decoder<unknown>)(value)

layer(filledDatabase, { excludeTestServices: true })((it) => {
  const test = makeTest(it.effect)

  for (const [unit, make, max, columns] of limits)
    for (const column of columns)
      test(`the schema and an import accept at most ${max} ${unit} in ${column}`, function* () {
        const sql = yield* PgClient.PgClient
        const [table, name] = column.split(".") as [string, string]
        const schema = (schemas[table]!.fields as Readonly<Record<string, Schema.Top>>)[name]!
        const isJson = objects.includes(column)
        for (const [size, isAccepted] of [
          [max, true],
          [max + (make === bytes ? 2 : 1), false]
        ] as const) {
          const value = make(size)
          const cast = isJson ? "$1::text::jsonb" : "$1::text"
          const stored = yield* Effect.exit(sql.unsafe(`update ${table} set ${name} = ${cast}`, [value]))
          assert.strictEqual(Exit.isSuccess(stored), isAccepted, `${column} stores ${size}`)
          const imported = decode(schema, isJson ? JSON.parse(value) : value)
          assert.strictEqual(Result.isSuccess(imported), isAccepted, `${column} imports ${size}`)
        }
      })

  for (const [table, max, schema, item, columns, rows] of [
    ["prompt_tags", sizes.promptTags, tags, id(3), "prompt_id, tag_id", "id from tags order by name limit"],
    [
      "prompt_fragments",
      sizes.promptFragments,
      fragments,
      { id: id(3), fragment_id: id(3), position: 0, variable_overrides: {} },
      "prompt_id, position, fragment_id",
      `n, '${id(3)}' from generate_series(1, 101) n order by n limit`
    ]
  ] as const)
    test(`the schema and an import accept at most ${max} rows of ${table} per prompt`, function* () {
      const isImported = (length: number) => Result.isSuccess(decode(schema, Array(length).fill(item)))
      assert.deepStrictEqual([isImported(max), isImported(max + 1)], [true, false])
      const sql = yield* PgClient.PgClient
      const add = (prompt: string, count: number, offset = 0) =>
        sql.unsafe(`insert into ${table} (${columns}) select '${prompt}', ${rows} ${count} offset ${offset}`)
      yield* sql.unsafe(`delete from ${table}`)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(add(id(4), max + 1))))
      yield* add(id(4), max)
      const other = id(5)
      yield* sql`insert into prompts (id, workspace_id) values (${other}, ${id(1)}) on conflict do nothing`
      yield* add(other, 1, max)
      const move = sql.unsafe(`update ${table} set prompt_id = '${id(4)}' where prompt_id = '${other}'`)
      assert.isTrue(Exit.isFailure(yield* Effect.exit(move)))
    })

  it.effect.prop(
    "an import counts the bytes of JSON as PostgreSQL does",
    { numbers, names: Arbitrary.array(texts, { maxLength: 4 }) },
    Effect.fnUntraced(function* ({ numbers, names }) {
      const sql = yield* PgClient.PgClient
      const map = Object.fromEntries(names.map((name) => [name, { [name]: [...numbers, name, true, null] }]))
      const [row] = yield* sql`select octet_length((${JSON.stringify(map)}::text::jsonb)::text) as bytes`
      assert.deepStrictEqual(row, { bytes: countJsonBytes(map) })
    }),
    { arbitrary: { runs: 200 } }
  )
})
