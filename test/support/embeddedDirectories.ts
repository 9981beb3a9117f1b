import { cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import * as EmbeddedPostgres from "../../src/adapters/outbound/postgres/pglite/EmbeddedPostgres.ts"

const root = join(import.meta.dirname, "../..")
const { dependencies } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const cache = join(root, "node_modules/.cache/prompt-retrieval")
/** The data directory of an empty database, which one version of PGlite has created. */
const template = join(cache, `pglite-${dependencies["@electric-sql/pglite"]}`)

const createTemplate = async (): Promise<void> => {
  mkdirSync(cache, { recursive: true })
  const created = mkdtempSync(`${template}-`)
  await Effect.runPromise(Effect.scoped(EmbeddedPostgres.open({ dataDir: created })))
  try {
    renameSync(created, template)
  } catch (error) {
    // Another test process was faster.
    if (!existsSync(template)) throw error
    rmSync(created, { recursive: true })
  }
}

/** Copies an empty embedded database into a directory, because PGlite takes seconds to create one. */
export const copyEmptyDatabase = async (directory: string): Promise<void> => {
  if (!existsSync(template)) await createTemplate()
  cpSync(template, directory, { recursive: true })
}
