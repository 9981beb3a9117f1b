import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { rolldown } from "rolldown"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { bin, install, makeProject, pack, removeDirectories, run } from "../../test/support/packages.ts"

const root = join(import.meta.dirname, "../..")
const client = join(root, "client")
const source = join(client, "src")

/** An empty project with the packed client installed. */
let project: string
let tarball: string
let installed: string
beforeAll(async () => {
  tarball = await pack(client)
  project = makeProject("client-user")
  await install(project, tarball)
  installed = join(project, "node_modules/@prompt-retrieval/client")
})
afterAll(removeDirectories)

const readFiles = (folder: string, suffix: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(suffix))
    .map((name) => readFileSync(join(folder, name), "utf8"))

const removeComments = (text: string): string => text.replaceAll(/\/\*.*?\*\//gs, "")

/** Type-checks modules of the project with the given libraries and no other types. */
const compile = async (sources: Readonly<Record<string, string>>, lib: ReadonlyArray<string>) => {
  const folder = mkdtempSync(join(project, "sources-"))
  for (const [name, text] of Object.entries(sources)) writeFileSync(join(folder, name), text)
  const compilerOptions = {
    target: "ES2022",
    module: "NodeNext",
    moduleResolution: "NodeNext",
    strict: true,
    exactOptionalPropertyTypes: true,
    noEmit: true,
    skipLibCheck: false,
    types: [],
    lib
  }
  writeFileSync(
    join(folder, "tsconfig.json"),
    JSON.stringify({ compilerOptions, files: Object.keys(sources) })
  )
  return run(folder, bin("tsc"), ["-p", "."])
}

describe("the packed client", () => {
  it("installing the client installs no other package", () => {
    expect(readdirSync(join(project, "node_modules")).filter((name) => !name.startsWith("."))).toEqual([
      "@prompt-retrieval"
    ])
    expect(readdirSync(join(project, "node_modules/@prompt-retrieval"))).toEqual(["client"])
    expect(readdirSync(installed).toSorted()).toEqual(["README.md", "dist", "package.json"])
  })

  it("publint and are-the-types-wrong report no problem of the client's tarball", async () => {
    expect(await run(root, bin("publint"), ["--strict", tarball])).toMatchObject({ code: 0 })
    expect(await run(root, bin("attw"), ["--profile", "esm-only", tarball])).toMatchObject({ code: 0 })
  })

  it.each([".js", ".d.ts"])("the client's %s files import only each other", (suffix) => {
    const files = readFiles(join(installed, "dist"), suffix)
    expect(files).toHaveLength(readFiles(source, ".ts").length)
    const specifiers = files
      .map(removeComments)
      .flatMap((text) =>
        [
          ...text.matchAll(/\b(?:from|import|require)\s*\(?\s*["']([^"']+)["']/g),
          ...text.matchAll(/<reference (.*)\/>/g)
        ].map((match) => match[1]!)
      )
    expect(specifiers.length).toBeGreaterThan(5)
    expect(specifiers.filter((specifier) => !/^\.\/[A-Z]\w+\.(js|ts)$/.test(specifier))).toEqual([])
  })

  it("the client is at most 7 KB, minified and compressed", async () => {
    const bundle = await rolldown({ input: join(installed, "dist/index.js") })
    const { output } = await bundle.generate({ format: "esm", minify: true })
    await bundle.close()
    expect(output).toHaveLength(1)
    expect(output[0].imports).toEqual([])
    expect(output[0].exports).toContain("PromptClient")
    expect(gzipSync(output[0].code).length).toBeLessThanOrEqual(7 * 1024)
  })

  it("the client's types need neither DOM nor Node types, and reject wrong uses", async () => {
    const user = `
import { NotFoundError, PromptClient, type Signal } from "@prompt-retrieval/client"
declare const signal: Signal
const client = new PromptClient({ apiKey: "k", fetch: async () => ({
  status: 200, headers: { get: () => null }, body: null, text: async () => "" }) })
const { data, source } = await client.prompts.get(promptId, { signal })
export const title: string = data.title
export const from: "fresh" | "cached" | "stale" = source
// @ts-expect-error A result of type any would compile.
export const wrong: number = data.title
// @ts-expect-error There is no such prompt type.
client.prompts.list({ type: "poem" })
// @ts-expect-error apiKey is a string.
new PromptClient({ apiKey: 1 })
// @ts-expect-error There is no such option.
new PromptClient({ apikey: "k" })
// @ts-expect-error Version numbers are numbers.
client.prompts.versions.get(promptId, "1")
for await (const { id } of client.prompts.list()) { const text: string = id; void text }
export const code = (error: unknown): string => error instanceof NotFoundError ? error.code : ""
`
    expect(await compile({ "user.mts": user }, ["ES2022"])).toMatchObject({ code: 0, stdout: "" })
  })
})

describe("the client's documentation", () => {
  it("every public function has an example, and the examples of JSDoc and README compile", async () => {
    const examples = [
      ...readFiles(source, ".ts").flatMap((text) =>
        [...text.matchAll(/@example\n\s*\* ```ts\n(.*?)\s*\* ```/gs)].map((match) =>
          match[1]!.replaceAll(/^ *\* ?/gm, "")
        )
      ),
      ...[...readFileSync(join(installed, "README.md"), "utf8").matchAll(/```ts\n(.*?)```/gs)].map(
        (match) => match[1]!
      )
    ]
    for (const call of [
      "new PromptClient(",
      "prompts.list(",
      "prompts.get(",
      "prompts.getResolved(",
      "versions.list(",
      "versions.get(",
      "withOptions(",
      "prefetch(",
      "fillSlots("
    ]) {
      expect(examples.some((example) => example.includes(call))).toBe(true)
    }
    const modules = Object.fromEntries(examples.map((example, index) => [`example${index}.mts`, example]))
    expect(await compile(modules, ["ES2022", "DOM"])).toMatchObject({ code: 0, stdout: "" })
  })
})
