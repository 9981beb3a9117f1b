/** The scenario that imports an archive. */
import { execFile } from "node:child_process"
import { once } from "node:events"
import { closeSync, createReadStream, mkdtempSync, openSync, rmSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { pipeline } from "node:stream/promises"
import { promisify } from "node:util"
import postgres, { type Sql } from "postgres"
import { importTables } from "../src/adapters/outbound/postgres/content/ContentTables.ts"
import { writeArchive } from "./archive.ts"
import type { Scenario } from "./comparisons.ts"
import type { Dataset } from "./dataset.ts"
import type { Harness } from "./harness.ts"
import { median } from "./load.ts"
import { atMost } from "./measurement.ts"
import { root } from "./processes.ts"

const withSql = async <A>(database: Dataset, run: (sql: Sql) => Promise<A>): Promise<A> => {
  const sql = postgres(database.url, { max: 1, onnotice: () => {} })
  try {
    return await run(sql)
  } finally {
    await sql.end()
  }
}

/** Returns the seconds that `run` takes in an empty database, and what `inspect` returns for the database afterward. */
const measureInEmptyDatabase = async (
  { createDatabase }: Harness,
  run: (database: Dataset) => Promise<unknown>,
  inspect: (database: Dataset) => Promise<void> = async () => {}
): Promise<number> => {
  const database = await createDatabase()
  try {
    const started = performance.now()
    await run(database)
    const seconds = (performance.now() - started) / 1000
    await inspect(database)
    return seconds
  } finally {
    await database.drop()
  }
}

/** Imports an archive through the command line. */
const importArchive = (archive: string) => (database: Dataset) =>
  promisify(execFile)(process.execPath, [join(root, "src/main.ts"), "import", archive], {
    env: { PATH: process.env.PATH, HOME: process.env.HOME, DATABASE_URL: database.url }
  })

const copyRowsTo = (directory: string) => (database: Dataset) =>
  withSql(database, async (sql) => {
    for (const table of importTables) {
      const rows = await sql.unsafe(`copy ${table} to stdout`).readable()
      const file = openSync(join(directory, table), "w")
      // A reader that pauses the stream can stall the driver.
      rows.on("data", (chunk: Buffer) => writeSync(file, chunk))
      await once(rows, "end")
      closeSync(file)
    }
  })

/** Writes the rows that `copyRowsTo` read, in one transaction. */
const copyRowsFrom = (directory: string) => (database: Dataset) =>
  withSql(database, (sql) =>
    sql.begin(async (transaction) => {
      for (const table of importTables) {
        const rows = await transaction.unsafe(`copy ${table} from stdin`).writable()
        await pipeline(createReadStream(join(directory, table)), rows)
      }
    })
  )

export const importScenario: Scenario = {
  group: "import",
  title: "Import of an archive",
  workspaces: [],
  measure: async (harness) => {
    const { imports, importedPrompts } = harness.scale
    const directory = mkdtempSync(join(tmpdir(), "bench-import-"))
    const archive = join(directory, "archive.json")
    try {
      await writeArchive(archive, importedPrompts)
      const pairs: Array<readonly [imported: number, copied: number]> = []
      for (let i = 0; i < imports; i++)
        pairs.push([
          await measureInEmptyDatabase(harness, importArchive(archive), copyRowsTo(directory)),
          await measureInEmptyDatabase(harness, copyRowsFrom(directory))
        ])
      return [
        {
          title: `${importScenario.title} of ${importedPrompts.toLocaleString("en")} prompts`,
          unit: "of the time to COPY its rows",
          goal: atMost(2, 1.4),
          samples: pairs.map(([imported, copied]) => imported / copied),
          detail: {
            "import s": median(pairs.map(([imported]) => imported)),
            "COPY s": median(pairs.map(([, copied]) => copied))
          }
        }
      ]
    } finally {
      rmSync(directory, { recursive: true })
    }
  }
}
