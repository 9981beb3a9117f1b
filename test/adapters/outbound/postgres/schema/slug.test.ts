import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, layer } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import { toSlug } from "../../../../../src/domain/PromptName.ts"
import { sizes } from "../../../../../src/domain/Sizes.ts"
import { texts } from "../../../../support/archives.ts"
import { migratedDatabase } from "../../../../support/database/server.ts"

/** Characters on which the slug depends: letters in both cases, accents, compatibility forms, and separators. */
const characters = Array.from(
  "aZ09_- .ßẞÀéÅÅñİıſKΩøØæŁﬁ①²½Ⅳｆｕｌｌ全角ヴ한글ड़𝐀𝕏🄰🅰é̂͏̴़゙҃ͨ\u00ad\u200b\u3000\t\n'\"\\{}%$"
)

const titles = Arbitrary.map(Arbitrary.all([texts, texts]), ([text, other]) => {
  const mixed = Array.from(other, (character) => characters[character.codePointAt(0)! % characters.length])
  return Array.from(`${mixed.join("")}${text}`)
    .slice(0, sizes.nameLength)
    .join("")
})

layer(migratedDatabase, { excludeTestServices: true })((it) => {
  it.effect.prop(
    "prompts.slug contains the slug of any title, and after an update the slug of the new title",
    { sample: Arbitrary.array(titles, { minLength: 20, maxLength: 100 }) },
    Effect.fnUntraced(function* ({ sample }) {
      const sql = yield* PgClient.PgClient
      const rows = yield* sql<{ readonly title: string; readonly slug: string }>`
        with workspace as (insert into workspaces default values returning id)
        insert into prompts (workspace_id, title)
        select id, title from workspace, json_array_elements_text(${JSON.stringify(sample)}::json) title
        returning title, slug`
      for (const { title, slug } of rows) assert.strictEqual(slug, toSlug(title), JSON.stringify(title))
      assert.strictEqual(rows.length, sample.length)
      const renamed =
        yield* sql`update prompts set title = 'Renamed Prompt' where slug <> 'renamed-prompt' returning slug`
      for (const row of renamed) assert.deepStrictEqual(row, { slug: "renamed-prompt" })
    }),
    { arbitrary: { runs: 100 } }
  )
})
