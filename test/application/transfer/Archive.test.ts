import { assert, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { encodeArchive } from "../../../src/application/transfer/Archive.ts"
import { decodeArchive } from "../../../src/application/transfer/ArchiveDecoder.ts"
import { ArchiveTooLarge } from "../../../src/domain/WorkspaceContent.ts"
import { archive, archives, fragment, instant, key, toArchiveText, user } from "../../support/archives.ts"

it.prop(
  "the text of an archive is JSON that parses to the same archive, with its members in a fixed order",
  { original: archives },
  ({ original }) => {
    const parsed = JSON.parse(toArchiveText(original))
    assert.deepStrictEqual(parsed, original)
    const lists = ["users", "api_keys", "folders", "tags", "fragments", "prompts"]
    assert.deepStrictEqual(Object.keys(parsed), ["format", "workspace", ...lists])
  }
)

it("encodeArchive encodes the text in chunks, and fails with ArchiveTooLarge for more than 256 MiB", () => {
  const part = fragment("ä".repeat(512 * 1024))
  const small = archive({ fragments: [part, part, part] })
  const chunks = Result.getOrThrow(encodeArchive(small))
  assert.strictEqual(Buffer.concat(chunks).toString(), toArchiveText(small))
  const large = archive({ fragments: Array.from({ length: 256 }, () => fragment("x".repeat(2 ** 20))) })
  assert.deepStrictEqual(encodeArchive(large), Result.fail(ArchiveTooLarge))
})

it("an export writes expires_at only for a key that expires, and an import accepts other keys without expires_at or with null", () => {
  const owner = user()
  const expiring = key(null, owner, { expires_at: instant("2027-01-01T00:00:00.000Z") }).stored
  const { stored } = key(null, owner)
  const original = archive({ users: [owner], api_keys: [expiring, stored] })
  const { expires_at: _, ...withoutExpiry } = stored
  const json = JSON.parse(toArchiveText(original))
  assert.deepStrictEqual(json.api_keys, [expiring, withoutExpiry])
  assert.deepStrictEqual(decodeArchive(json), Result.succeed(original))
  assert.deepStrictEqual(decodeArchive(original), Result.succeed(original))
})
