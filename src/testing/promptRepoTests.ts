import * as Effect from "effect/Effect"
import type * as Schema from "effect/Schema"
import type { PromptRepo } from "../application/ports/PromptRepo.ts"
import type { Archive } from "../application/transfer/Archive.ts"
import { type PromptId, PromptType } from "../domain/Prompt.ts"
import {
  archive,
  awkwardTexts,
  folder,
  fragment,
  fragmentBinding,
  instant,
  prompt,
  tag,
  version
} from "./archives.ts"
import { assertReads } from "./promptReads.ts"

/** A test of a contract suite, for any test runner. If the store breaks the rule, `run` fails or dies. */
export interface ContractTest<R> {
  /** The rule that the test checks. */
  readonly name: string
  readonly run: Effect.Effect<void, unknown, R>
}

/**
 * Stores a workspace with its content, users and keys in the store under test. If the workspace exists, replaces its
 * content, and adds or updates its users and keys.
 */
export type LoadWorkspace<R> = (archive: Archive) => Effect.Effect<unknown, unknown, R>

/** Returns a workspace with every kind of content, whose tags, texts and JSON are difficult to store unchanged. */
const makeAwkwardArchive = (): Archive => {
  const freeForm: Record<string, Schema.Json> = JSON.parse(
    `{"": 1, " ": "", "a.b": {"c": [[], {}, null, true, "\\ud83d\\ude00"]}, "__proto__": {"x": 1},
    "constructor": "y", "camelCase": 1, "snake_case": 2, "0": 0, "big": 9007199254740991,
    "small": 5e-324, "huge": 1.7976931348623157e308, "fraction": 0.1, "negative": -1.5}`
  )
  const tags = [
    ...["production", "Production", " production", "production ", "größe", "gro\u0308ße", "😀", "\ufffd"],
    ...["a", "%", "_", "*", "\\", "'", '"', "' or 1=1 --", "null", "__proto__", "{a,b}", "x".repeat(256)],
    ...[" ", "!", "10", "9", "B", "Z", "a b", "ab", "b", "z", "ß", "ä", "\uffee"]
  ].map((name) => tag(name))
  const folders = [folder(), folder()]
  const fragments = [...awkwardTexts, "long ä😀\n".repeat(20_000)].map((text) => fragment(text))
  const prompts = fragments.map((snippet, index) => {
    const text = snippet.content
    const [short, summary] = [text.slice(0, 256), text.slice(0, 8_000)]
    return prompt({
      title: short,
      description: summary,
      current_content: text,
      target_model: short,
      intent: short,
      prompt_type: PromptType.literals[index % PromptType.literals.length]!,
      folder_id: folders[index % 3]?.id ?? null,
      is_archived: index % 5 === 0,
      updated_at: instant(`2026-01-0${(index % 9) + 1}`),
      tags: tags.slice(index).map(({ id }) => id),
      fragments: [
        fragmentBinding(snippet, 1, { variable_overrides: { text: summary } }),
        fragmentBinding(snippet, 1 + (index % 2), { variable_overrides: freeForm })
      ],
      versions: [
        version(1, { content: text, change_summary: summary, change_source: short }),
        version(2, { metadata: freeForm, created_at: instant("2026-03-02") })
      ]
    })
  })
  return archive({ folders, tags: tags.toReversed(), fragments, prompts })
}

/** Returns a prompt whose id starts with `start` and ends with `end`. */
const makeNamesake = (start: string, end: number, title: string, time: string) =>
  prompt({
    id: `${start}-0000-4000-8000-${String(end).padStart(12, "0")}` as PromptId,
    title,
    created_at: instant(time),
    versions: [version(1)]
  })

/**
 * Makes the contract suite of `PromptRepo`. Every adapter of the project passes the suite. The expected results come
 * from the in-memory adapter.
 *
 * @param load Stores a workspace with its content. Each test makes workspaces with new ids.
 */
export const makePromptRepoTests = <R>(
  load: LoadWorkspace<R>
): ReadonlyArray<ContractTest<PromptRepo | R>> => [
  {
    name: "PromptRepo never returns anything of another workspace, even of a workspace with the same content",
    run: Effect.gen(function* () {
      const [own, other, unknown] = [makeAwkwardArchive(), makeAwkwardArchive(), archive()]
      yield* load(own)
      yield* load(other)
      yield* assertReads(own, other)
      yield* assertReads(unknown, own)
    })
  },

  {
    name: "PromptRepo returns texts, tags, metadata and overrides unchanged, and finds tags only by their exact names",
    run: Effect.gen(function* () {
      const awkward = makeAwkwardArchive()
      yield* load(awkward)
      yield* assertReads(awkward)
    })
  },

  {
    name: "PromptRepo finds the oldest unarchived prompt of a slug by the slug alone, and the others by slug and digits",
    run: Effect.gen(function* () {
      const original = makeNamesake("aaaaaaaa", 3, "Support agent", "2026-01-01")
      const namesakes = [
        makeNamesake("aaaaaaaa", 2, "Support agent", "2026-01-02"),
        makeNamesake("bbbbbbbb", 1, "support  AGENT!", "2026-01-02"),
        { ...makeNamesake("aaaaaaaa", 1, "Support agent", "2025-01-01"), is_archived: true },
        makeNamesake("cccccccc", 1, "Release 20260101", "2026-01-01"),
        makeNamesake("dddddddd", 1, "dddddddd-0000-4000-8000-000000000002", "2026-01-01"),
        makeNamesake("eeeeeeee", 1, "プロンプト", "2026-01-01")
      ]
      const before = archive({ prompts: [original, ...namesakes] })
      const after = { ...before, prompts: [{ ...original, title: "Agent for support" }, ...namesakes] }
      for (const stored of [before, after]) {
        yield* load(stored)
        yield* assertReads(stored, before)
      }
    })
  }
]
