import { expect, it } from "vitest"
import { printModules } from "../../support/programs/printModules.ts"
import { run, sourceProgram, startService } from "../../support/service.ts"

/** Nothing listens on this port. */
const DATABASE_URL = "postgres://127.0.0.1:1/none"
const env = { DATABASE_URL, ...printModules }

/** Returns the modules that a process has printed: paths in `src`, or the names of packages. */
const readModules = (output: string): ReadonlySet<string | undefined> => {
  const urls = output.split("\n").filter((line) => line.startsWith("file:"))
  return new Set(
    urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)|\/src\/(.*)$/.exec(url)?.slice(1).join(""))
  )
}

/** Returns the output of a command, and the modules that it loads. */
const listModules = async (...args: ReadonlyArray<string>) => {
  const { stdout, stderr } = await run(args, env, "", sourceProgram)
  return { stdout, modules: readModules(stderr) }
}

/** The libraries of the directory import and the archive import, and modules that only `serve` needs. */
const optional = [
  "@streamparser/json",
  "diff",
  "yaml",
  "adapters/inbound/cli/files/FilesImport.ts",
  "adapters/inbound/http/App.ts",
  "adapters/outbound/postgres/embedded/EmbeddedPostgres.ts",
  "runtime/RequestLayers.ts",
  "runtime/ServeLayers.ts"
]

it("serve with a PostgreSQL server loads neither the embedded database nor the modules of other commands", async () => {
  const service = await startService(env, "/healthz", [], sourceProgram)
  await service.stop()
  const modules = readModules(service.output())
  expect(modules).toContain("adapters/inbound/http/App.ts")
  const unneeded = [
    "adapters/inbound/cli/Commands.ts",
    "adapters/inbound/mcp/HttpEndpoint.ts",
    "adapters/outbound/postgres/PostgresWorkspaceStore.ts",
    "adapters/outbound/postgres/embedded/EmbeddedPostgres.ts",
    "application/Administration.ts",
    "application/NamedPrompts.ts"
  ]
  expect(unneeded.filter((module) => modules.has(module))).toEqual([])
  expect(service.output()).not.toContain("/NodeServices.js")
})

it("workspaces list loads the database, and no module that only other commands need", async () => {
  const { modules } = await listModules("workspaces", "list")
  expect(modules).toContain("adapters/outbound/postgres/PostgresWorkspaceStore.ts")
  expect(optional.filter((module) => modules.has(module))).toEqual([])
})

it("import loads the modules for directories only if its path is a directory", async () => {
  const { modules } = await listModules("import", "examples/prompts-as-files", "--workspace", "Acme")
  expect([...modules].filter((module) => optional.includes(module!)).toSorted()).toEqual([
    "adapters/inbound/cli/files/FilesImport.ts",
    "diff",
    "yaml"
  ])
})

it("completion lists commands without loading their modules", async () => {
  const { modules, stdout } = await listModules("completion", "bash")
  expect(modules).not.toContain("adapters/outbound/postgres/PostgresWorkspaceStore.ts")
  expect(optional.filter((module) => modules.has(module))).toEqual([])
  for (const word of ["import", "export", "--dry-run", "--overwrite"]) expect(stdout).toContain(word)
})
