import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import type { Archive } from "../../src/application/transfer/Archive.ts"
import { Prompt, PromptType } from "../../src/domain/Prompt.ts"
import { maxInt32, minInt32 } from "../../src/domain/Sizes.ts"
import type { PromptVersion, WorkspacePrompt } from "../../src/domain/Workspace.ts"
import {
  archive,
  awkwardTexts,
  folder,
  fragment,
  instant,
  newId,
  tag,
  versionNumber
} from "../../src/testing/archives.ts"

const awkward = [...awkwardTexts, " \n", "\r\n \n".repeat(9)]

/** Texts that an archive may contain: no NUL, which PostgreSQL cannot store, and no unpaired surrogates. */
export const texts: Arbitrary.Arbitrary<string> = Arbitrary.map(
  Arbitrary.all([Arbitrary.schema(Schema.Natural), Arbitrary.schema(Schema.String)]),
  ([pick, text]) =>
    pick % 3 === 0 ? awkward[(pick / 3) % awkward.length]! : text.replaceAll("\0", "\u2400").toWellFormed()
)

/**
 * A free-form JSON object, such as `metadata` and `variable_overrides`. Replaces escapes of characters that PostgreSQL
 * cannot store. Also replaces backslashes, to work around nodejs/node#63785: after a member name with an escaped
 * backslash, `JSON.parse` decodes other escapes in member names as a backslash.
 */
const freeForm: Arbitrary.Arbitrary<Record<string, Schema.Json>> = Arbitrary.map(
  Arbitrary.schema(Schema.Record(Schema.String, Schema.Json)),
  (map) => JSON.parse(JSON.stringify(map).replaceAll(/\\\\|\\u[0-9a-f]{4}/g, "/"))
)

const naturals = Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 })))

const pick = <A>(values: ReadonlyArray<A>, index: number): A => values[index % values.length]!

/** Generates one of a few values, so that equal values are common. */
const oneOf = <A>(...values: ReadonlyArray<A>): Arbitrary.Arbitrary<A> =>
  Arbitrary.map(naturals, (index) => pick(values, index))

/** Times, from the earliest to the latest timestamp that an archive may contain. */
const instants = Arbitrary.map(
  oneOf(
    ...["0001-01-01T00:00:00.000Z", "1969-12-31T23:59:59.999Z", "2026-03-01T00:00:00.000Z"],
    ...["2026-03-01T00:00:00.001Z", "9999-12-31T23:59:59.999Z"]
  ),
  instant
)

const tagNames = oneOf(
  ...["production", "Production", "prod", "production ", "ä", "a\u0308", "😀", "\ufffd", "%", "'", "\\", ""],
  "x".repeat(256)
)

const generatedVersion = Arbitrary.all({
  gap: oneOf(1, 2, 3),
  parent: naturals,
  created_at: instants,
  content: texts,
  change_summary: texts,
  change_source: texts,
  metadata: freeForm
})

const generatedUse = Arbitrary.all({
  fragment: naturals,
  position: oneOf(minInt32, -1, 0, 1, maxInt32),
  variable_overrides: Arbitrary.map(Arbitrary.all([freeForm, texts]), ([map, text]) => ({ ...map, text }))
})

const generatedPrompt = Arbitrary.all({
  title: texts,
  description: texts,
  current_content: texts,
  target_model: texts,
  intent: texts,
  prompt_type: Arbitrary.schema(PromptType),
  current_version: naturals,
  sort_order: Arbitrary.schema(Prompt.fields.sort_order),
  folder: naturals,
  is_favorite: oneOf(true, false),
  is_archived: oneOf(false, false, false, true),
  created_at: instants,
  updated_at: instants,
  tags: Arbitrary.array(naturals, { maxLength: 4 }),
  fragments: Arbitrary.array(generatedUse, { maxLength: 4 }),
  versions: Arbitrary.array(generatedVersion, { maxLength: 4 })
})

const distinct = <A>(items: ReadonlyArray<A>): ReadonlyArray<A> => [...new Set(items)]

/**
 * Archives that `decodeArchive` accepts, without users and keys. Many archives contain equal times, equal folder names,
 * awkward texts, archived prompts, or versions with gaps in their numbers. Each archive has new ids, even during
 * shrinking, so that it does not conflict with an earlier archive in a shared database.
 */
export const archives: Arbitrary.Arbitrary<Archive> = Arbitrary.map(
  Arbitrary.all({
    folders: Arbitrary.array(texts, { maxLength: 3 }),
    tags: Arbitrary.array(tagNames, { maxLength: 5 }),
    fragments: Arbitrary.array(texts, { maxLength: 3 }),
    prompts: Arbitrary.array(generatedPrompt, { maxLength: 8 })
  }),
  (plan): Archive => {
    const folders = plan.folders.map((name) => folder({ name: name.slice(0, 200).toWellFormed() }))
    const tags = distinct(plan.tags).map((name) => tag(name))
    const fragments = plan.fragments.map((content) => fragment(content))
    const makeVersions = (planned: (typeof plan.prompts)[number]["versions"]) => {
      const versions: Array<PromptVersion> = []
      let number = 0
      for (const { gap, parent, ...fields } of planned) {
        number += gap
        versions.push({
          ...fields,
          id: newId(),
          version_number: versionNumber(number),
          parent_version_id: pick([null, ...versions.map(({ id }) => id)], parent)
        })
      }
      return versions
    }
    const prompts = plan.prompts.map(({ folder, ...fields }): WorkspacePrompt => {
      const uses = fragments.length === 0 ? [] : fields.fragments
      return {
        ...fields,
        id: newId(),
        folder_id: pick([null, ...folders.map(({ id }) => id)], folder),
        tags: tags.length === 0 ? [] : distinct(fields.tags.map((index) => pick(tags, index).id)),
        fragments: uses.map(({ fragment, ...use }) => ({
          ...use,
          id: newId(),
          fragment_id: pick(fragments, fragment).id
        })),
        versions: makeVersions(fields.versions)
      }
    })
    return archive({ folders, tags, fragments, prompts })
  }
)
