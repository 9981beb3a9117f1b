import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { type Archive, archiveFormat } from "../../../src/application/transfer/Archive.ts"
import { archive, archives, instant, key, parseArchive, toArchiveText, user } from "../../support/archives.ts"

/** Returns the archive with the members of each prompt in the order of an export. */
const inExportOrder = ({ prompts, ...others }: Archive): Archive => ({
  ...others,
  prompts: prompts.map(({ tags, fragments, versions, ...row }) => ({ ...row, tags, fragments, versions }))
})

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

describe("ArchiveWriter", () => {
  it.prop(
    "ArchiveWriter writes one item per line, and the text parses as the archive",
    { original: archives },
    ({ original }) => {
      const ordered = inExportOrder(original)
      const text = toArchiveText(ordered)
      assert.strictEqual(text, toLines(ordered))
      assert.deepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(original)))
    }
  )
})

describe("the expires_at of a key in an archive", () => {
  const owner = user()
  const expires_at = instant("2027-01-01T00:00:00.000Z")
  const expiring = key(null, owner, { expires_at }).stored
  const { stored } = key(null, owner)
  const original = archive({ users: [owner], api_keys: [expiring, stored] })

  it("ArchiveWriter writes expires_at only for a key that expires", () => {
    const { expires_at: _, ...withoutExpiry } = stored
    assert.deepStrictEqual(JSON.parse(toArchiveText(original)).api_keys, [expiring, withoutExpiry])
  })

  it("for a key that does not expire, expires_at can be absent or null in an archive", () => {
    assert.deepStrictEqual(parseArchive(JSON.parse(toArchiveText(original))), Result.succeed(original))
    assert.deepStrictEqual(parseArchive(original), Result.succeed(original))
  })
})
