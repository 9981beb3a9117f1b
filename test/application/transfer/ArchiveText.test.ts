import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { type Archive, archiveFormat } from "../../../src/application/transfer/Archive.ts"
import { decodeArchive } from "../../../src/application/transfer/ArchiveDecoder.ts"
import { encodeArchive } from "../../../src/application/transfer/ArchiveText.ts"
import { ArchiveTooLarge } from "../../../src/domain/WorkspaceContent.ts"
import { archive, archives, fragment, instant, key, toArchiveText, user } from "../../support/archives.ts"

/** Returns the text of an archive's file: one item per line. */
const toLines = ({ workspace, format: _, ...lists }: Archive): string => {
  const list = (items: ReadonlyArray<unknown>): string =>
    items.length === 0 ? "[]" : `[\n${items.map((item) => JSON.stringify(item)).join(",\n")}\n]`
  const { users, api_keys, folders, tags, fragments, prompts } = lists
  const members = Object.entries({ users, api_keys, folders, tags, fragments, prompts })
  return [
    `{"format":"${archiveFormat}"`,
    `"workspace":${JSON.stringify(workspace)}`,
    ...members.map(([name, items]) => `"${name}":${list(items)}`)
  ]
    .join(",\n")
    .concat("}\n")
}

describe("the text of an archive", () => {
  it.prop(
    "writeArchive writes one item per line, and the text parses as the archive",
    { original: archives },
    ({ original }) => {
      const text = toArchiveText(original)
      assert.strictEqual(text, toLines(original))
      assert.deepStrictEqual(JSON.parse(text), original)
    }
  )

  it("encodeArchive encodes the text in chunks, and fails with ArchiveTooLarge for more than 256 MiB", () => {
    const part = fragment("ä".repeat(512 * 1024))
    const small = archive({ fragments: [part, part, part] })
    const chunks = Result.getOrThrow(encodeArchive(small))
    assert.isAbove(chunks.length, 1)
    assert.strictEqual(Buffer.concat(chunks).toString(), toArchiveText(small))
    const large = archive({ fragments: Array.from({ length: 256 }, () => fragment("x".repeat(2 ** 20))) })
    assert.deepStrictEqual(encodeArchive(large), Result.fail(ArchiveTooLarge))
  })

  const owner = user()
  const expires_at = instant("2027-01-01T00:00:00.000Z")
  const expiring = key(null, owner, { expires_at }).stored
  const { stored } = key(null, owner)
  const original = archive({ users: [owner], api_keys: [expiring, stored] })

  it("writeArchive writes expires_at only for a key that expires", () => {
    const { expires_at: _, ...withoutExpiry } = stored
    assert.deepStrictEqual(JSON.parse(toArchiveText(original)).api_keys, [expiring, withoutExpiry])
  })

  it("for a key that does not expire, expires_at can be absent or null in an archive", () => {
    assert.deepStrictEqual(decodeArchive(JSON.parse(toArchiveText(original))), Result.succeed(original))
    assert.deepStrictEqual(decodeArchive(original), Result.succeed(original))
  })
})
