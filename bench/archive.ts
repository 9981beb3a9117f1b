import { randomUUID } from "node:crypto"
import { createWriteStream } from "node:fs"
import { pipeline } from "node:stream/promises"
import { ArchiveWriter } from "../src/application/formats/ArchiveWriter.ts"
import { toExportParts } from "../src/domain/workspace/WorkspaceParts.ts"
import { archive, fragment, fragmentBinding, prompt, tag, version } from "../test/support/archives.ts"

function* generateArchive(count: number): Generator<string> {
  const { workspace } = archive()
  const tags = Array.from({ length: 20 }, (_, index) => tag(`tag ${index}`))
  const fragments = Array.from({ length: 100 }, () => fragment(`Write as {{name}} does. ${randomUUID()}`))
  const writer = new ArchiveWriter()
  yield writer.write({ list: "workspace", item: workspace })
  for (const item of tags) yield writer.write({ list: "tags", item })
  for (const item of fragments) yield writer.write({ list: "fragments", item })
  for (let index = 0; index < count; index++) {
    const content = `${randomUUID()} Answer {{question}} in "quotes".\n`.repeat(12)
    const first = version(1, { content })
    const item = prompt({
      title: `Prompt ${index}`,
      current_content: content,
      current_version: 2,
      tags: [tags[index % tags.length]!.id],
      fragments: [
        fragmentBinding(fragments[index % fragments.length]!, 1, { variable_overrides: { name: "Ada" } })
      ],
      versions: [first, version(2, { content, parent_version_id: first.id })]
    })
    for (const part of toExportParts([{ list: "prompts", item }])) yield writer.write(part)
  }
  yield writer.end()
}

/** Writes an archive of a workspace with `count` prompts, each with 2 versions, a tag and a fragment. */
export const writeArchive = (file: string, count: number): Promise<void> =>
  pipeline(generateArchive(count), createWriteStream(file))
