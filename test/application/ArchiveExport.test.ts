import { assert, describe, it } from "@effect/vitest"
import { archiveFormat, archiveWriter, partsOf } from "../../src/application/Archive.ts"
import { archiveOfExport, exportPartsOf, exportWriter } from "../../src/application/ArchiveExport.ts"
import { archive, archives, prompt, sample } from "../support/archives.ts"

describe("the pieces of an export", () => {
  it.prop(
    "form the same text and the same archive as the archive's parts",
    { made: archives },
    ({ made: { prompts, ...rest } }) => {
      // The members of a prompt in the order of an export.
      const made = {
        ...rest,
        prompts: prompts.map(({ tags, fragments, versions, ...row }) => ({
          ...row,
          tags,
          fragments,
          versions
        }))
      }
      const whole = archiveWriter()
      const text = [...partsOf(made)].map(whole.write).join("") + whole.end()
      const piecewise = exportWriter()
      const pieces = [...exportPartsOf(partsOf(made))]
      assert.strictEqual(pieces.map(piecewise.write).join("") + piecewise.end(), text)
      assert.deepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(made)))
      assert.deepStrictEqual(archiveOfExport(pieces), { ...made, format: archiveFormat })
    }
  )

  it("write prompts with and without fragments and versions in any order", () => {
    const { archive: own } = sample()
    const [greeting] = own.prompts
    const made = archive({
      prompts: [
        prompt(),
        greeting!,
        prompt({ versions: greeting!.versions }),
        prompt({ fragments: greeting!.fragments }),
        prompt()
      ]
    })
    const writer = exportWriter()
    const text = [...exportPartsOf(partsOf(made))].map(writer.write).join("") + writer.end()
    assert.deepStrictEqual(JSON.parse(text), JSON.parse(JSON.stringify(made)))
  })
})
