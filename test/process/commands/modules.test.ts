import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { root } from "../../docs/markdown.ts"
import { run, sourceProgram, startService } from "../../support/service.ts"

/** Nothing listens on the port of this URL. */
const DATABASE_URL = "postgres://127.0.0.1:1/none"
/** Makes a process print to stderr the URL of each module that it loads. */
const hooks = `import { registerHooks } from "node:module"
registerHooks({
  load: (url, context, next) => {
    process._rawDebug(url)
    return next(url, context)
  }
})`
const env = { DATABASE_URL, NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(hooks)}` }

/** Returns the modules that a process has printed: paths in `src`, or the names of packages. */
const readModules = (output: string): ReadonlySet<string | undefined> => {
  const urls = output.split("\n").filter((line) => line.startsWith("file:"))
  return new Set(
    urls.map((url) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)|\/src\/(.*)$/.exec(url)?.slice(1).join(""))
  )
}

/**
 * Returns the path of a module in `src`. Throws if the module does not exist, because the test would then always pass.
 */
const source = (path: string): string => {
  if (!existsSync(join(root, "src", path))) throw new Error(`There is no ${path}`)
  return path
}

/** Modules that neither `serve` with a PostgreSQL server nor an embedder loads by default. */
const optional = [
  "adapters/inbound/cli/Commands.ts",
  "adapters/inbound/mcp/HttpEndpoint.ts",
  "adapters/outbound/postgres/embedded/EmbeddedPostgres.ts",
  "adapters/outbound/postgres/workspaces/PostgresWorkspaceStore.ts",
  "adapters/outbound/rate-limiter/RedisRateLimiter.ts",
  "application/administration/Administration.ts",
  "runtime/telemetry/ProcessMetrics.ts"
].map(source)

const expectOnlyNeeded = (output: string) => {
  const modules = readModules(output)
  expect(modules).toContain(source("adapters/inbound/http/App.ts"))
  expect(optional.filter((module) => modules.has(module))).toEqual([])
  expect(modules).not.toContain("@modelcontextprotocol/server")
  expect(output).not.toMatch(/\/Node(Services|Redis)\.js/)
}

it("serve with a PostgreSQL server loads neither the modules of other commands nor the modules of features that are off", async () => {
  const service = await startService(env, "/healthz", [], sourceProgram)
  await service.stop()
  expectOnlyNeeded(service.output())
})

it("the package for embedders loads neither the modules of commands nor the modules of features that are off", async () => {
  const { stderr } = await run([], env, "", join(root, "src/index.ts"))
  expectOnlyNeeded(stderr)
})

it("--version prints the same text as the command version, and loads no package", async () => {
  const { stdout, stderr } = await run(["--version"], env, "", sourceProgram)
  expect([...readModules(stderr)].toSorted()).toEqual(["application/ProgramVersion.ts", "main.ts"])
  expect(stdout).toBe((await run(["version"], env)).stdout)
})
