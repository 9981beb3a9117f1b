import { mkdirSync, symlinkSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { build } from "esbuild"
import { beforeAll, expect, it } from "vitest"
import { renderTypes } from "../../../client/src/pull/TypesFile.ts"
import { bundledPrompt } from "../../../client/test/pull/bundles.ts"
import { readDocument, readTable, root } from "../../docs/markdown.ts"
import { bin, install, makeProject, pack, run } from "../../support/programs/packages.ts"
import { findTool } from "../../support/programs/tools.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const document = "docs/client.md"

const unquote = (cell: string): string => cell.replaceAll("`", "")

const rows = readTable(document, "Settings").map(([project, manifest, options, path]) => ({
  project: project!,
  manifest: manifest === "any" ? {} : JSON.parse(`{${unquote(manifest!)}}`),
  options: JSON.parse(`{${unquote(options!)}}`),
  path: unquote(path!),
  /** The earliest minor version of TypeScript 5 to which the row applies. */
  since: Number(/TypeScript 5\.(\d)/.exec(project!)?.[1] ?? 4)
}))

/** The file `prompts.ts` that `pull` would write. */
const constants = renderTypes(
  [{ content: 'For {{shop}} {{a "b"}} {{\u202e}} {{\\}}' }, { name: "delete" }].map((fields) =>
    bundledPrompt(fields)
  )
)

const application = (path: string): string => `import { fillSlots } from "@prompt-retrieval/client"
import { FakeService } from "@prompt-retrieval/client/testing"
import * as prompts from "${path}"

declare const console: { log(value: unknown): void }
const main = async (): Promise<void> => {
  const { name } = prompts.supportAgent
  const client = new FakeService({ prompts: [{ name, content: "For {{shop}}" }] }).connect()
  const { data } = await client.prompts.getResolved(prompts.supportAgent)
  console.log(fillSlots(data, { shop: "Acme", 'a "b"': "2", "\\u202e": "3", "\\\\": "4" }))
  console.log(Object.keys(prompts).length)
  // @ts-expect-error A variable is missing.
  void (() => fillSlots(data, { shop: "Acme" }))
}
void main()
`

const compilers = [
  { version: "5.4", minor: 4, command: [process.execPath, findTool("typescript-5.4/bin/tsc")] },
  { version: "5.9", minor: 9, command: [process.execPath, findTool("typescript-5.9/bin/tsc")] },
  { version: "7.0", minor: 10, command: [bin("tsc")] }
] as const

/** The directory in which the packed client is installed. Projects in its subdirectories can import the client. */
let home: string
beforeAll(async () => {
  home = makeProject("settings")
  await install(home, await pack(join(root, "client")))
})

let count = 0
/** Creates a project with these files, in a subdirectory of `home`. */
const make = (manifest: object, files: Readonly<Record<string, string>>): string => {
  const directory = join(home, `project-${count++}`)
  mkdirSync(directory)
  writeFileSync(join(directory, "package.json"), JSON.stringify(manifest))
  for (const [name, text] of Object.entries(files)) writeFileSync(join(directory, name), text)
  return directory
}

/** Each row with the oldest compiler to which the row applies, and each row with the newest compiler. */
const combinations = rows.flatMap((row) => {
  const meant = compilers.filter(({ minor }) => minor >= row.since)
  return [meant[0]!, meant.at(-1)!].map((compiler) => ({ ...row, ...compiler }))
})

it.each(combinations)(
  "with the settings for $project and TypeScript $version, an application with prompts.ts compiles and runs, but does not compile if fillSlots lacks a variable",
  async ({ manifest, options, path, minor, command: [command, ...args] }) => {
    const project = make(manifest, { "prompts.ts": constants, "main.ts": application(path) })
    const compilerOptions = {
      target: "es2022",
      strict: true,
      // The types of the client need neither DOM nor Node types.
      skipLibCheck: false,
      lib: ["es2022"],
      types: [],
      outDir: "dist",
      rootDir: ".",
      // TypeScript 5.5 introduced this option.
      ...(minor > 4 && { declaration: true, isolatedDeclarations: true }),
      ...options
    }
    writeFileSync(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["main.ts"] }))
    expect(await run(project, command!, [...args, "-p", "."])).toEqual({ code: 0, stdout: "", stderr: "" })
    let program = options.noEmit ? "main.ts" : "dist/main.js"
    if (options.moduleResolution === "bundler") {
      program = "bundle.mjs"
      const entry = { entryPoints: [join(project, "main.ts")], outfile: join(project, program) }
      await build({ ...entry, bundle: true, platform: "node", format: "esm", logLevel: "error" })
    }
    const result = await run(project, process.execPath, [program])
    expect(result).toEqual({ code: 0, stdout: "For Acme\n2\n", stderr: "" })
  }
)

it.each([
  { type: "module", imports: (name: string, from: string) => `import { ${name} } from "${from}"` },
  { type: "commonjs", imports: (name: string, from: string) => `const { ${name} } = require("${from}")` }
])(
  "with the documented command, Jest runs tests of a project with the type $type",
  async ({ type, imports }) => {
    const project = make(
      { type },
      {
        "a.test.js": `${imports("fillSlots", "@prompt-retrieval/client")}
${imports("FakeService", "@prompt-retrieval/client/testing")}
test("a prompt", async () => {
const client = new FakeService({ prompts: [{ name: "a", content: "For {{shop}}" }] }).connect()
expect(fillSlots((await client.prompts.getResolved("a")).data, { shop: "Acme" })).toBe("For Acme")
})`
      }
    )
    mkdirSync(join(project, "node_modules"))
    symlinkSync(findTool("jest"), join(project, "node_modules/jest"))
    const [, command] = /`node (--experimental-vm-modules \S+)`/.exec(readDocument(document))!
    const result = await run(project, process.execPath, command!.split(" "), {
      HOME: makeTestDirectory("jest-")
    })
    expect(result).toMatchObject({ code: 0, stderr: expect.stringContaining("Tests:       1 passed") })
  }
)
