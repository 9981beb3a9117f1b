/** The scenario that imports an archive. */
import { randomUUID } from "node:crypto"
import { once } from "node:events"
import {
  closeSync,
  createReadStream,
  mkdtempSync,
  openSync,
  rmSync,
  statSync,
  writeFileSync,
  writeSync
} from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import type { Sql } from "postgres"
import { archive, fragment, fragmentBinding, prompt, tag, version } from "../test/support/archives.ts"
import { runCommand } from "./command.ts"
import type { Scenario } from "./comparisons.ts"
import { median } from "./load.ts"
import { atMost } from "./measurement.ts"

const importedPrompts = 20_000

/** Makes the archive of a workspace. Each prompt has 2 versions, a tag and a fragment. */
const generateArchive = () => {
  const tags = Array.from({ length: 20 }, (_, index) => tag(`tag ${index}`))
  const fragments = Array.from({ length: 100 }, () => fragment(`Write as {{name}} does. ${randomUUID()}`))
  const prompts = Array.from({ length: importedPrompts }, (_, index) => {
    const content = `${randomUUID()} Answer {{question}} in "quotes".\n`.repeat(12)
    const first = version(1, { content })
    return prompt({
      title: `Prompt ${index}`,
      current_content: content,
      current_version: 2,
      tags: [tags[index % tags.length]!.id],
      fragments: [
        fragmentBinding(fragments[index % fragments.length]!, 1, { variable_overrides: { name: "Ada" } })
      ],
      versions: [first, version(2, { content, parent_version_id: first.id })]
    })
  })
  return archive({ tags, fragments, prompts })
}

/** The tables that an import writes. Each table follows the tables to which its foreign keys refer. */
const tables = [
  ...["workspaces", "users", "api_keys", "folders", "tags", "fragments", "prompts"],
  ...["prompt_fragments", "prompt_versions", "prompt_tags"]
]

const copyRowsTo = async (directory: string, sql: Sql): Promise<void> => {
  for (const table of tables) {
    const rows = await sql.unsafe(`copy ${table} to stdout`).readable()
    const file = openSync(join(directory, table), "w")
    // `pipeline` would pause the stream, and a pause can stall the driver.
    rows.on("data", (chunk: Buffer) => writeSync(file, chunk))
    await once(rows, "end")
    closeSync(file)
  }
}

/** Writes the rows that `copyRowsTo` read, in one transaction. Returns the duration in milliseconds. */
const copyRowsFrom = async (directory: string, sql: Sql): Promise<number> => {
  const started = performance.now()
  await sql.begin(async (transaction) => {
    for (const table of tables) {
      const rows = await transaction.unsafe(`copy ${table} from stdin`).writable()
      await pipeline(createReadStream(join(directory, table)), rows)
    }
  })
  return performance.now() - started
}

export const importScenario: Scenario = {
  group: "import",
  title: "Import of an archive",
  workspaces: [],
  measure: async ({ createDatabase, scale }) => {
    const directory = mkdtempSync(join(tmpdir(), "bench-import-"))
    const file = join(directory, "archive.json")
    const title = `${importScenario.title} of ${importedPrompts.toLocaleString("en")} prompts`
    try {
      writeFileSync(file, JSON.stringify(generateArchive()))
      const fileMiB = statSync(file).size / 1024 ** 2
      const runs: Array<{ readonly duration: number; readonly copied: number; readonly peakMiB: number }> = []
      for (let i = 0; i < scale.imports; i++) {
        const [imported, copied] = [await createDatabase(), await createDatabase()]
        try {
          const run = await runCommand(["import", file], imported.url)
          await copyRowsTo(directory, imported.sql)
          runs.push({ ...run, copied: await copyRowsFrom(directory, copied.sql) })
        } finally {
          await imported.drop()
          await copied.drop()
        }
      }
      return [
        {
          title,
          unit: "of the time to COPY its rows",
          goal: atMost(5, 4),
          samples: runs.map(({ duration, copied }) => duration / copied),
          detail: {
            "import ms": median(runs.map(({ duration }) => duration)),
            "COPY ms": median(runs.map(({ copied }) => copied))
          }
        },
        {
          title: "Peak memory of the import",
          unit: "of the size of the archive",
          goal: atMost(6, 5),
          samples: runs.map(({ peakMiB }) => peakMiB / fileMiB),
          detail: { "archive MiB": fileMiB }
        }
      ]
    } finally {
      rmSync(directory, { recursive: true })
    }
  }
}
