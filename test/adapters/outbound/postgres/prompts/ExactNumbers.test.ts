import { writeFileSync } from "node:fs"
import { join } from "node:path"
import * as NodeCrypto from "@effect/platform-node/NodeCrypto"
import * as PgClient from "@effect/sql-pg/PgClient"
import { assert, describe, layer } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Result from "effect/Result"
import { readArchiveFile } from "../../../../../src/adapters/inbound/cli/archive/ArchiveFile.ts"
import { firstPrompt, renderFiles } from "../../../inbound/cli/files/promptFiles.ts"
import { assignPaths } from "../../../../../src/application/transfer/PromptPaths.ts"
import { parsePromptFiles } from "../../../../../src/application/transfer/PromptText.ts"
import * as PostgresPromptRepo from "../../../../../src/adapters/outbound/postgres/prompts/PostgresPromptRepo.ts"
import { Administration } from "../../../../../src/application/administration/Administration.ts"
import type { Archive } from "../../../../../src/application/transfer/Archive.ts"
import { InvalidContent } from "../../../../../src/domain/workspace/Problem.ts"
import { archive, fragment, prompt, fragmentBinding, version } from "../../../../support/archives.ts"
import { awkwardNumbers, jsonMaps } from "../../../../support/json.ts"
import { workspaceStore } from "../../../../support/database/workspaceStore.ts"
import { migratedDatabase } from "../../../../support/postgres.ts"
import { makeTestDirectory } from "../../../../support/testDirectory.ts"

const services = Layer.mergeAll(
  PostgresPromptRepo.layer,
  Administration.layer.pipe(Layer.provide([workspaceStore, NodeCrypto.layerSecureRandom]))
).pipe(Layer.provideMerge(migratedDatabase))

const directory = makeTestDirectory("exact-numbers-")

/** Returns the text of an archive whose metadata and overrides are exactly these texts. */
const toArchiveText = (original: Archive, metadata: string, overrides: string): string =>
  JSON.stringify(original)
    .replace('"metadata":{}', () => `"metadata":${metadata}`)
    .replace('"variable_overrides":{}', () => `"variable_overrides":${overrides}`)

const importText = Effect.fnUntraced(function* (text: string) {
  const { importArchive } = yield* Administration
  const file = join(directory, "archive.json")
  writeFileSync(file, text)
  yield* importArchive(readArchiveFile(file, () => {}))
})

const exportText = Effect.fnUntraced(function* (original: Archive) {
  const { exportArchive } = yield* Administration
  let text = ""
  yield* exportArchive(original.workspace.id, (some) =>
    Effect.sync(() => {
      text += some
    })
  )
  return text
})

const makeArchive = (content = "{{a}} {{1.10}}") => {
  const snippet = fragment(content)
  const one = prompt({ fragments: [fragmentBinding(snippet, 1)], versions: [version(1)] })
  return { one, original: archive({ fragments: [snippet], prompts: [one] }) }
}

/** Reads the JSON text that PostgreSQL stores, and the text that PostgreSQL would store for `written`. */
const readStored = Effect.fnUntraced(function* ([table, column, id, written]: readonly [
  table: string,
  column: string,
  id: string,
  written: string
]) {
  const sql = yield* PgClient.PgClient
  const [row] = yield* sql.unsafe<{
    readonly held: string
    readonly expected: string
    readonly xmin: string
  }>(
    `select ${column}::text as held, $2::text::jsonb::text as expected, xmin::text from ${table} where id = $1`,
    [id, written]
  )
  return row!
})

const freeFormTexts = Arbitrary.all({ metadata: jsonMaps, overrides: jsonMaps })

describe("free-form JSON", () => {
  layer(services, { excludeTestServices: true })((it) => {
    it.effect.prop(
      "free-form JSON has the same numbers after an import, an export and another import",
      { texts: freeFormTexts },
      Effect.fnUntraced(function* ({ texts }) {
        const { one, original } = makeArchive()
        const rows = [
          ["prompt_versions", "metadata", one.versions[0]!.id, texts.metadata],
          ["prompt_fragments", "variable_overrides", one.fragments[0]!.id, texts.overrides]
        ] as const
        yield* importText(toArchiveText(original, texts.metadata, texts.overrides))
        const first = yield* Effect.forEach(rows, (row) => readStored(row))
        for (const { held, expected } of first) assert.strictEqual(held, expected)

        const exported = yield* exportText(original)
        yield* importText(exported)
        assert.deepStrictEqual(yield* Effect.forEach(rows, (row) => readStored(row)), first)
        assert.strictEqual(yield* exportText(original), exported)
      }),
      { arbitrary: { runs: 25 } }
    )

    it.effect.prop(
      "an import of exported files leaves free-form JSON unchanged",
      { texts: freeFormTexts },
      Effect.fnUntraced(function* ({ texts }) {
        const { original } = makeArchive()
        const { importFiles, readContent } = yield* Administration
        yield* importText(toArchiveText(original, texts.metadata, texts.overrides))
        const before = yield* exportText(original)
        const files = assignPaths(yield* readContent(original.workspace.id))
        const read = Result.getOrThrow(parsePromptFiles(original.workspace.id, renderFiles(files)))
        assert.deepStrictEqual((yield* importFiles(original.workspace.id, read)).changes, [])
        // An import that changes fragments leaves all JSON exact, including metadata, which no file contains.
        const changed = read.map((file) =>
          file.state.kind === "fragment" ? { ...file, state: { ...file.state, content: "changed" } } : file
        )
        yield* importFiles(original.workspace.id, changed)
        assert.strictEqual((yield* exportText(original)).replace("changed", "{{a}} {{1.10}}"), before)
      }),
      { arbitrary: { runs: 25 } }
    )

    it.effect("an import of files keeps every digit of the numbers in overrides", () =>
      Effect.gen(function* () {
        const { one, original } = makeArchive()
        const { importFiles } = yield* Administration
        yield* importText(JSON.stringify(original))
        const numbers = [...awkwardNumbers, "+7", "007", ".5", "5.", "0x20000000000001"]
        const list = `[${awkwardNumbers.join(", ")}, 7, 7, 0.5, 5, 9007199254740993]`
        const files = Result.getOrThrow(
          parsePromptFiles(
            original.workspace.id,
            new Map([
              ["fragments/f.md", `---\nid: ${original.fragments[0]!.id}\n---\n{{a}}\n`],
              [
                "prompts/p.md",
                `---\nid: ${one.id}\nsort_order: 0x10\nfragments:\n  - fragment: f\n    with:\n      a: 1.10\n      "1.10": 1\n      12345678901234567890: x\n      deep:\n        - [${numbers.join(", ")}]\n---\n`
              ]
            ])
          )
        )
        assert.strictEqual(firstPrompt(files).sort_order, 16)
        yield* importFiles(original.workspace.id, files)
        assert.deepStrictEqual((yield* importFiles(original.workspace.id, files)).changes, [])
        const { held, expected } = yield* readStored([
          "prompt_fragments",
          "variable_overrides",
          one.fragments[0]!.id,
          `{"a": 1.10, "1.10": 1, "12345678901234567890": "x", "deep": [${list}]}`
        ])
        assert.strictEqual(held, expected)
      })
    )

    it.effect("an import with a number that PostgreSQL cannot store is rejected, and changes nothing", () =>
      Effect.gen(function* () {
        const { original } = makeArchive()
        yield* importText(toArchiveText(original, '{"a": 1.10}', "{}"))
        const before = yield* exportText(original)
        for (const number of ["1e131072", "1e-16384", "1".repeat(131_073), "1e99999999999999999999"]) {
          const rejected = yield* Effect.flip(importText(toArchiveText(original, `{"a": [${number}]}`, "{}")))
          const message = "must hold numbers that JSON can write"
          assert.deepStrictEqual<unknown>(
            rejected,
            InvalidContent([{ path: "prompts[0].versions[0].metadata", message }])
          )
        }
        assert.strictEqual(yield* exportText(original), before)
        yield* importText(toArchiveText(original, `{"a": [1e40000, 1e-16383]}`, "{}"))
      })
    )
  })
})
