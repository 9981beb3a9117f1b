import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { printModules } from "../../support/programs/printModules.ts"
import { run, sourceProgram, startService } from "../../support/service.ts"

/** Nothing listens on the port of this URL. */
const DATABASE_URL = "postgres://127.0.0.1:1/none"
const env = { DATABASE_URL, ...printModules }

/** Returns the modules that a process has printed: paths in `src`, or the names of packages. */
const readModules = (output: string): ReadonlySet<string | undefined> => {
  const urls = output.split("\n").filter((line) => line.startsWith("file:"))
  return new Set(
    urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)|\/src\/(.*)$/.exec(url)?.slice(1).join(""))
  )
}

const listModules = async (...args: ReadonlyArray<string>) => {
  const { stdout, stderr } = await run(args, env, "", sourceProgram)
  return { stdout, modules: readModules(stderr) }
}

/**
 * Returns the path of a module in `src`. Throws if the module does not exist, because the test would then always pass.
 */
const source = (path: string): string => {
  if (!existsSync(join(import.meta.dirname, "../../../src", path))) throw new Error(`There is no ${path}`)
  return path
}

const workspaceStore = source("adapters/outbound/postgres/workspaces/PostgresWorkspaceStore.ts")

it("serve with a PostgreSQL server loads neither the embedded database nor the modules of other commands", async () => {
  const service = await startService(env, "/healthz", [], sourceProgram)
  await service.stop()
  const modules = readModules(service.output())
  expect(modules).toContain("adapters/inbound/http/App.ts")
  const unneeded = [
    source("adapters/inbound/cli/Commands.ts"),
    workspaceStore,
    source("adapters/outbound/postgres/embedded/EmbeddedPostgres.ts"),
    source("application/administration/Administration.ts")
  ]
  expect(unneeded.filter((module) => modules.has(module))).toEqual([])
  expect(service.output()).not.toContain("/NodeServices.js")
})

it("--version prints the same text as the command version, and loads no package", async () => {
  const { modules, stdout } = await listModules("--version")
  expect([...modules].toSorted()).toEqual(["application/ProgramVersion.ts", "main.ts"])
  expect(stdout).toBe((await run(["version"], env)).stdout)
})
