import { assert, describe, it } from "@effect/vitest"
import {
  type Archive,
  archiveFormat,
  archiveFromExport,
  toWorkspaceParts
} from "../../../src/application/formats/Archive.ts"
import { toExportParts } from "../../../src/domain/WorkspaceParts.ts"
import { archive, archives, prompt, sample, toArchiveText } from "../../support/archives.ts"

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
  it.prop("writes one item per line, which parses as the archive", { original: archives }, ({ original }) => {
    const ordered = inExportOrder(original)
    const text = toArchiveText(ordered)
    assert.strictEqual(text, toLines(ordered))
    assert.deepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(original)))
  })

  it("writes prompts with and without fragments and versions in any order", () => {
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

describe("archiveFromExport", () => {
  it.prop("builds the archive whose parts were exported", { original: archives }, ({ original }) => {
    assert.deepStrictEqual(archiveFromExport(toExportParts(toWorkspaceParts(original))), {
      ...original,
      format: archiveFormat
    })
  })
})
