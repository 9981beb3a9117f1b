import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { readArchiveFile } from "../../../../../src/adapters/inbound/cli/archive/ArchiveFile.ts"
import { CommandError } from "../../../../../src/adapters/inbound/cli/output/CommandError.ts"
import { workspaceLists } from "../../../../../src/domain/workspace/WorkspaceParts.ts"
import { InvalidContent } from "../../../../../src/domain/workspace/Problem.ts"
import { type RawPart, toRawParts } from "../../../../../src/application/transfer/RawPart.ts"
import {
  archive,
  archives,
  fragment,
  sample,
  shuffleMembers,
  toArchiveText
} from "../../../../support/archives.ts"
import { makeTestDirectory } from "../../../../support/testDirectory.ts"

const directory = makeTestDirectory("archive-file-")
const file = join(directory, "archive.json")

const read = (content: string | Uint8Array) => {
  writeFileSync(file, content)
  return Stream.runCollect(readArchiveFile(file, () => {}))
}

/**
 * Converts an archive to the parts that a stream emits. The part for a list or for the root does not repeat the items,
 * which are separate parts.
 */
const toStreamedParts = (json: unknown) =>
  [...toRawParts(json)].map(({ path, value }) => {
    const [key, index] = path
    if (index !== undefined) return { path, value }
    if (key === undefined) return { path, value: {} }
    return { path, value: workspaceLists.some((list) => list === key) ? [] : value }
  })

describe("readArchiveFile", () => {
  it.effect.prop(
    "readArchiveFile yields the parts of the archive in the order of the file",
    { original: archives, order: Arbitrary.array(Arbitrary.schema(Schema.Natural), { maxLength: 8 }) },
    Effect.fnUntraced(function* ({ original, order }) {
      for (const indent of [0, 2]) {
        assert.deepStrictEqual(yield* read(JSON.stringify(original, null, indent)), toStreamedParts(original))
      }
      const shuffled = shuffleMembers(original, order)
      assert.deepStrictEqual(yield* read(JSON.stringify(shuffled)), toStreamedParts(shuffled))
      const written = toArchiveText(original)
      assert.deepStrictEqual(JSON.parse(written), original)
      assert.deepStrictEqual(yield* read(written), toStreamedParts(original))
    })
  )

  it.effect(
    "readArchiveFile reads values that span chunks, and reports the number of bytes that were read",
    () =>
      Effect.gen(function* () {
        const original = archive({
          fragments: Array.from({ length: 30 }, (_, index) => fragment('ä😀\\"\n'.repeat(9_000 + index)))
        })
        const text = JSON.stringify(original)
        writeFileSync(file, text)
        let bytes = 0
        const values = yield* Stream.runCollect(
          readArchiveFile(file, (count) => {
            bytes += count
          })
        )
        assert.deepStrictEqual(values, toStreamedParts(original))
        assert.strictEqual(bytes, Buffer.byteLength(text))
      })
  )

  it.effect(
    "readArchiveFile emits the parts before the first error of a file, and then fails with the error",
    () =>
      Effect.gen(function* () {
        const { archive: original } = sample()
        const text = JSON.stringify(original)
        writeFileSync(file, text.replace('"prompts":[', '"prompts":[nil,'))
        const read: Array<RawPart> = []
        const error = yield* readArchiveFile(file, () => {}).pipe(
          Stream.runForEach((part) => Effect.sync(() => void read.push(part))),
          Effect.flip
        )
        assert.deepStrictEqual(
          read.map(({ path }) => path[0]).filter((name) => name === "prompts"),
          []
        )
        assert.match(String(Reflect.get(error, "problems")[0].message), /^is not a JSON document in UTF-8: ./)
      })
  )

  it.effect("readArchiveFile keeps keys such as __proto__, and accepts a byte order mark", () =>
    Effect.gen(function* () {
      const [value] = yield* read('\ufeff{"a": {"__proto__": {"b": 1}, "constructor": 2}}')
      assert.strictEqual(JSON.stringify(value!.value), '{"__proto__":{"b":1},"constructor":2}')
    })
  )

  const text = JSON.stringify(sample().archive)

  it.effect.each<readonly [string, string | Uint8Array]>([
    ["text that is not JSON", "format: prompt-retrieval/workspace@1"],
    ["two archives", text + text],
    ["a comment", `// archive\n${text}`],
    ["a trailing comma", '{"users": [],}'],
    ["a number with a leading zero", '{"a": 01}'],
    ["bytes that are not UTF-8", Buffer.from([...Buffer.from('{"a": "'), 0xff, ...Buffer.from('"}')])],
    ["Latin-1", Buffer.from('{"a": "Büro"}', "latin1")],
    ["UTF-16", Buffer.from(text, "utf16le")],
    ["half a character", Buffer.from([...Buffer.from("{}"), 0xc3])],
    ["a surrogate in UTF-8", Buffer.from([...Buffer.from('{"a": "'), 0xed, 0xa0, 0x80, ...Buffer.from('"}')])]
  ])("readArchiveFile fails with InvalidContent for %s", ([, content]) =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(read(content))
      assert.strictEqual(error._tag, "InvalidContent")
      if (error._tag !== "InvalidContent") return
      assert.deepStrictEqual(
        error.problems.map(({ path }) => path),
        [""]
      )
      assert.match(error.problems[0]!.message, /^is not a JSON document in UTF-8: ./)
    })
  )

  it.effect.each<readonly [string, string | Uint8Array, string]>([
    ["no bytes", "", "is empty"],
    ["blanks", " \n ", "is empty"],
    ["half of a string", '{"format": "prompt-', "is truncated at byte 19"],
    ["half of a character", Buffer.from([...Buffer.from('{"a": "'), 0xc3]), "is truncated at byte 8"],
    ["no end of the root", '{"users": [], "tags": []', "is truncated at byte 24"],
    ["no end of a list", '{"users": [1', "is truncated at byte 12"],
    ["a member without a value", '{"users":\n', "is truncated at byte 10"],
    [
      "no last character",
      Buffer.from(text).subarray(0, -1),
      `is truncated at byte ${Buffer.byteLength(text) - 1}`
    ]
  ])(
    "readArchiveFile reports that a file is empty, or the byte at which the file is truncated: %s",
    ([, content, message]) =>
      Effect.gen(function* () {
        assert.deepStrictEqual(yield* Effect.flip(read(content)), InvalidContent([{ path: "", message }]))
      })
  )

  it.effect("readArchiveFile returns an escaped lone surrogate, which the archive reader rejects", () =>
    Effect.gen(function* () {
      const [value] = yield* read('{"a": "\\ud800"}')
      assert.deepStrictEqual(value, { path: ["a"], value: "\ud800" })
    })
  )

  it.effect("readArchiveFile reads values that nest 100,000 levels deep", () =>
    Effect.gen(function* () {
      const values = yield* read(`{"format": ${"[".repeat(100_000)}${"]".repeat(100_000)}}`)
      assert.deepStrictEqual(
        values.map(({ path }) => path),
        [["format"], []]
      )
    })
  )

  it.effect("readArchiveFile fails with the path of a file that does not exist", () =>
    Effect.gen(function* () {
      const missing = join(directory, "missing.json")
      assert.deepStrictEqual(
        yield* Effect.flip(Stream.runCollect(readArchiveFile(missing, () => {}))),
        new CommandError({
          message: `cannot read ${missing}: ENOENT: no such file or directory, open '${missing}'`
        })
      )
    })
  )
})
