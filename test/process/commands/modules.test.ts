import { expect, it } from "vitest"
import { run, sourceProgram } from "../../support/service.ts"

/** Prints the URL of each module that a process loads to stderr. */
const printModules = `import { registerHooks } from "node:module"
registerHooks({
  load: (url, context, next) => {
    process._rawDebug(url)
    return next(url, context)
  }
})`

/** Returns the output of a command, and the modules that it loads: paths in `src`, or the names of packages. */
const listModules = async (...args: ReadonlyArray<string>) => {
  // Nothing listens on this port.
  const env = {
    DATABASE_URL: "postgres://127.0.0.1:1/none",
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(printModules)}`
  }
  const { stdout, stderr } = await run(args, env, "", sourceProgram)
  const urls = stderr.split("\n").filter((line) => line.startsWith("file:"))
  return {
    stdout,
    modules: new Set(
      urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)|\/src\/(.*)$/.exec(url)?.slice(1).join(""))
    )
  }
}

/** The libraries of the directory import and the archive import, and modules that only `serve` needs. */
const optional = [
  "@streamparser/json",
  "diff",
  "yaml",
  "adapters/inbound/cli/FilesImport.ts",
  "adapters/inbound/http/App.ts",
  "adapters/outbound/postgres/pglite/EmbeddedPostgres.ts",
  "runtime/Layers.ts"
]

it("workspaces list loads the database, and no module that only other commands need", async () => {
  const { modules } = await listModules("workspaces", "list")
  expect(modules).toContain("adapters/outbound/postgres/PostgresWorkspaceStore.ts")
  expect(optional.filter((module) => modules.has(module))).toEqual([])
})

it("import loads the modules for directories only if its path is a directory", async () => {
  const { modules } = await listModules("import", "examples/prompts-as-files", "--workspace", "Acme")
  expect([...modules].filter((module) => optional.includes(module!)).toSorted()).toEqual([
    "adapters/inbound/cli/FilesImport.ts",
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
