import { createWriteStream, readFileSync, statSync } from "node:fs"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { expect, it } from "vitest"
import { type Archive, writeArchive } from "../../../src/application/transfer/Archive.ts"
import {
  archive,
  compareIds,
  fragment,
  fragmentBinding,
  prompt,
  tag,
  version
} from "../../support/archives.ts"
import { makeTestDatabase } from "../../support/database/testDatabase.ts"
import { run } from "../../support/services/startService.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const MiB = 1024 * 1024
const promptCount = 76_000

/** Makes items, sorted as an export sorts them. */
const makeItems = <A extends { readonly id: string }>(count: number, make: (index: number) => A) =>
  Array.from({ length: count }, (_, index) => make(index)).toSorted(compareIds)

/** Makes an archive that takes about 200 MiB as a file. */
const makeLargeArchive = (): Archive => {
  const tags = makeItems(20, (index) => tag(`tag ${index}`))
  const fragments = makeItems(100, (index) => fragment(`Text ${index}`))
  const prompts = makeItems(promptCount, (index) => {
    const language = index % 10 === 0 ? "日本語" : "Japanese"
    const content = `${index}: Answer {{question}} in "quotes", für alle, in ${language}.\n`.repeat(10)
    const first = version(1, { content })
    return prompt({
      title: `Prompt ${index}`,
      current_content: content,
      current_version: 2,
      tags: [tags[index % tags.length]!.id],
      fragments: [fragmentBinding(fragments[index % fragments.length]!, 1)],
      versions: [first, version(2, { content, parent_version_id: first.id })]
    })
  })
  return archive({ tags, fragments, prompts })
}

const scratch = makeTestDirectory("large-archive-")
const { env } = makeTestDatabase()

/** Runs a command. Returns the peak resident memory of its process in bytes. */
const measurePeak = async (args: ReadonlyArray<string>): Promise<number> => {
  const script = "process.on('exit',()=>console.error('maxRSS',process.resourceUsage().maxRSS))"
  const { code, stderr } = await run(args, {
    ...env,
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(script)}`
  })
  expect({ code, stderr }).toEqual({ code: 0, stderr: expect.stringContaining("maxRSS") })
  return Number(/maxRSS (\d+)/.exec(stderr)![1]) * 1024
}

it("an import and an export of a 200 MiB archive keep every byte, and each use at most 6.5 times as much memory", {
  timeout: 600_000
}, async () => {
  const [file, exported] = [join(scratch, "archive.json"), join(scratch, "exported.json")]
  const original = makeLargeArchive()
  await pipeline(writeArchive(original), createWriteStream(file))
  const { size } = statSync(file)
  expect(size).toBeGreaterThan(200 * MiB)
  const exportTo = ["export", "--workspace", original.workspace.id, "--out", exported]
  for (const args of [["import", file], exportTo])
    expect(await measurePeak(args), args[0]).toBeLessThan(6.5 * size)
  expect(readFileSync(exported).equals(readFileSync(file))).toBe(true)
})
