import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { build } from "esbuild"
import { beforeAll, expect, it } from "vitest"
import { install, makeProject, pack } from "../../test/support/programs/packages.ts"

const root = join(import.meta.dirname, "../..")
const client = join(root, "client")

/** The directory of the packed client after its installation in an empty project. */
let installed: string
/** The output of npm during the installation. */
let output: string
beforeAll(async () => {
  const project = makeProject("client-user")
  output = await install(project, await pack(client))
  installed = join(project, "node_modules/@prompt-retrieval/client")
})

it("npm installs the client without a warning, an install script or another package, and the README of the client contains only https links", () => {
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
