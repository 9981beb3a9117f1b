import { assert, describe, it } from "@effect/vitest"
import * as Result from "effect/Result"
import { type Archive, archiveFormat } from "../../../src/application/formats/Archive.ts"
import { toExportParts } from "../../../src/domain/workspace/WorkspaceParts.ts"
import {
  archive,
  archiveFromExport,
  archives,
  instant,
  key,
  parseArchive,
  prompt,
  sample,
  toArchiveText,
  toWorkspaceParts,
  user
} from "../../support/archives.ts"

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

  it("ArchiveWriter writes prompts with and without fragments and versions in any order", () => {
    const { archive: own } = sample()
    const [greeting] = own.prompts
    const original = archive({
      prompts: [
        prompt(),
        greeting!,
        prompt({ versions: greeting!.versions }),
        prompt({ fragments: greeting!.fragments }),
        prompt()
      ]
    })
    assert.deepStrictEqual(JSON.parse(toArchiveText(original)), JSON.parse(JSON.stringify(original)))
  })
})

describe("the expires_at of a key in an archive", () => {
  const owner = user()
  const expires_at = instant("2027-01-01T00:00:00.000Z")
  const expiring = key(null, owner, { expires_at }).stored
  const { stored } = key(null, owner)
  const original = archive({ users: [owner], api_keys: [expiring, stored] })

  it("an archive contains expires_at only for a key that expires", () => {
    const { expires_at: _, ...withoutExpiry } = stored
    assert.deepStrictEqual(JSON.parse(toArchiveText(original)).api_keys, [expiring, withoutExpiry])
  })

  it("expires_at may be absent or null in an archive for a key that does not expire", () => {
    assert.deepStrictEqual(parseArchive(JSON.parse(toArchiveText(original))), Result.succeed(original))
    assert.deepStrictEqual(parseArchive(original), Result.succeed(original))
  })

  it("expires_at in an archive may have any UTC offset", () => {
    const elsewhere = { ...expiring, expires_at: "2027-01-01T01:00:00+01:00" }
    assert.deepStrictEqual(
      parseArchive({ ...original, api_keys: [elsewhere, stored] }),
      Result.succeed(original)
    )
  })
})

describe("toExportParts", () => {
  it.prop(
    "toExportParts keeps every item of an archive and the order of each list",
    { original: archives },
    ({ original }) => {
      assert.deepStrictEqual(archiveFromExport(toExportParts(toWorkspaceParts(original))), {
        ...original,
        format: archiveFormat
      })
    }
  )
})
