import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Stream from "effect/Stream"
import { readArchiveFile } from "../../../../src/adapters/inbound/cli/ArchiveFile.ts"
import { CommandError } from "../../../../src/adapters/inbound/cli/CommandError.ts"
import { workspaceLists } from "../../../../src/domain/WorkspaceParts.ts"
import { toRawParts } from "../../../../src/application/formats/RawPart.ts"
import { archive, archives, fragment, sample, toArchiveText } from "../../../support/archives.ts"

const directory = mkdtempSync(join(tmpdir(), "archive-file-"))
afterAll(() => rmSync(directory, { recursive: true }))
const file = join(directory, "archive.json")

const read = (content: string | Uint8Array) => {
  writeFileSync(file, content)
  return Stream.runCollect(readArchiveFile(file, () => {}))
}

/** Values as the contract has them: what came before its whole is not in it again. */
const emptied = (json: unknown) =>
  [...toRawParts(json)].map(({ path, value }) => {
    const [key, index] = path
    if (index !== undefined) return { path, value }
    if (key === undefined) return { path, value: {} }
    return { path, value: workspaceLists.some((list) => list === key) ? [] : value }
  })

describe("an archive's file", () => {
  it.effect.prop(
    "gives the values that the whole has, in their order",
    { made: archives },
    Effect.fnUntraced(function* ({ made }) {
      for (const indent of [0, 2]) {
        assert.deepStrictEqual(yield* read(JSON.stringify(made, null, indent)), emptied(made))
      }
      const written = toArchiveText(made)
      assert.deepStrictEqual(JSON.parse(written), made)
      assert.deepStrictEqual(yield* read(written), emptied(made))
    })
  )

  it.effect("is read across chunks, and told how much of it was", () =>
    Effect.gen(function* () {
      const made = archive({
        fragments: Array.from({ length: 30 }, (_, index) => fragment('ä😀\\"\n'.repeat(9_000 + index)))
      })
      const text = JSON.stringify(made)
      writeFileSync(file, text)
      let bytes = 0
      const values = yield* Stream.runCollect(
        readArchiveFile(file, (count) => {
          bytes += count
        })
      )
      assert.deepStrictEqual(values, emptied(made))
      assert.strictEqual(bytes, Buffer.byteLength(text))
    })
  )

  it.effect("keeps names that JavaScript treats apart, and takes a byte order mark", () =>
    Effect.gen(function* () {
      const [value] = yield* read('\ufeff{"a": {"__proto__": {"b": 1}, "constructor": 2}}')
      assert.strictEqual(JSON.stringify(value!.value), '{"__proto__":{"b":1},"constructor":2}')
    })
  )

  const text = JSON.stringify(sample().archive)

  it.effect.each<readonly [string, string | Uint8Array]>([
    ["no bytes", ""],
    ["blanks", " \n "],
    ["no JSON", "format: prompt-retrieval/workspace@1"],
    ["half an archive", text.slice(0, text.length / 2)],
    ["an archive but its end", text.slice(0, -1)],
    ["two archives", text + text],
    ["a comment", `// archive\n${text}`],
    ["a comma too many", '{"users": [],}'],
    ["a number that is none", '{"a": 01}'],
    ["bytes that are no UTF-8", Buffer.from([...Buffer.from('{"a": "'), 0xff, ...Buffer.from('"}')])],
    ["Latin-1", Buffer.from('{"a": "Büro"}', "latin1")],
    ["UTF-16", Buffer.from(text, "utf16le")],
    ["half a character", Buffer.from([...Buffer.from("{}"), 0xc3])],
    ["a surrogate in UTF-8", Buffer.from([...Buffer.from('{"a": "'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')])]
  ])("is refused where it is %s", ([, content]) =>
    Effect.gen(function* () {
      const refusal = yield* Effect.flip(read(content))
      assert.strictEqual(refusal._tag, "InvalidContent")
      if (refusal._tag !== "InvalidContent") return
      assert.deepStrictEqual(
        refusal.problems.map(({ path }) => path),
        [""]
      )
      assert.match(refusal.problems[0]!.message, /^is not a JSON document in UTF-8: ./)
    })
  )

  it.effect("keeps half a surrogate pair that is escaped, which no archive may have", () =>
    Effect.gen(function* () {
      const [value] = yield* read('{"a": "\\ud800"}')
      assert.deepStrictEqual(value, { path: ["a"], value: "\ud800" })
    })
  )

  it.effect("may nest without end", () =>
    Effect.gen(function* () {
      const values = yield* read(`{"format": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`)
      assert.deepStrictEqual(
        values.map(({ path }) => path),
        [["format"], []]
      )
    })
  )

  it.effect("that is not there is told by its name", () =>
    Effect.gen(function* () {
      const missing = join(directory, "missing.json")
      assert.deepStrictEqual(
        yield* Effect.flip(Stream.runCollect(readArchiveFile(missing, () => {}))),
        new CommandError({
          message: `can't read ${missing}: ENOENT: no such file or directory, open '${missing}'`
        })
      )
    })
  )
})
