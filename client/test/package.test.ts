import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"
import { beforeAll, describe, expect, it } from "vitest"
import { bin, install, makeProject, pack, run } from "../../test/support/programs/packages.ts"

const root = join(import.meta.dirname, "../..")
const client = join(root, "client")

/** An empty project with the packed client installed. */
let project: string
let installed: string
/** The output of npm during the installation. */
let output: string
beforeAll(async () => {
  project = makeProject("client-user")
  output = await install(project, await pack(client))
  installed = join(project, "node_modules/@prompt-retrieval/client")
})

describe("the packed client", () => {
  it("npm installs the client without a warning, an install script or another package, and its README contains only https links", () => {
    expect(output).toMatch(/added 1 package\b/)
    expect(output).not.toMatch(/warn/i)
    expect(readdirSync(installed).toSorted()).toEqual(["README.md", "dist", "package.json"])
    const { scripts, dependencies } = JSON.parse(readFileSync(join(installed, "package.json"), "utf8"))
    expect(Object.keys(scripts).filter((name) => /install|prepare/.test(name))).toEqual([])
    expect(dependencies).toBeUndefined()
    const readme = readFileSync(join(installed, "README.md"), "utf8")
    expect([...readme.matchAll(/\]\((?!https:)/g)]).toEqual([])
  })

  it("the client imports no other package and no module of Node, and has at most 8 KiB, minified by esbuild and compressed with gzip", async () => {
    const { outputFiles, warnings } = await build({
      entryPoints: [join(installed, "dist/index.js")],
      bundle: true,
      minify: true,
      format: "esm",
      platform: "neutral",
      write: false
    })
    expect(warnings).toEqual([])
    const remedy =
      "The client is larger than its budget: shorten the change or what is beside it. If the feature is worth its size, " +
      "raise the budget here, in docs/client.md and in client/README.md."
    expect(gzipSync(outputFiles[0]!.contents).length, remedy).toBeLessThanOrEqual(8 * 1024)
  })

  it("the client's types need neither DOM nor Node types", async () => {
    const user = `
import { NotFoundError, PromptClient, type Signal } from "@prompt-retrieval/client"
declare const signal: Signal
const client = new PromptClient({ apiKey: "k", fetch: async () => ({
  status: 200, headers: { get: () => null }, body: null, text: async () => "" }) })
const { data } = await client.prompts.get("p", { signal })
export const title: string = data.title
// @ts-expect-error A result of type any would compile.
export const wrong: number = data.title
{
  await using live = await client.live({ tag: "t" })
}
for await (const { id } of client.prompts.list()) { const text: string = id; void text }
export const code = (error: unknown): string => error instanceof NotFoundError ? error.code : ""
`
    writeFileSync(join(project, "user.mts"), user)
    const compilerOptions = {
      target: "ES2022",
      module: "NodeNext",
      strict: true,
      exactOptionalPropertyTypes: true,
      noEmit: true,
      skipLibCheck: false,
      types: [],
      lib: ["ES2022"]
    }
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["user.mts"] }))
    expect(await run(project, bin("tsc"), ["-p", "."])).toMatchObject({ code: 0, stdout: "" })
  })
})
