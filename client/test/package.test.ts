import { readdirSync, readFileSync, rmSync } from "node:fs"
import { join } from "node:path"
import { gzipSync } from "node:zlib"
import { rolldown } from "rolldown"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { clientFolder, compileUsers, emitClient } from "./emit.ts"

let emitted: string
beforeAll(() => {
  emitted = emitClient()
})
afterAll(() => rmSync(emitted, { recursive: true }))

const contents = (folder: string, end: string) =>
  readdirSync(folder)
    .filter((name) => name.endsWith(end))
    .map((name) => readFileSync(join(folder, name), "utf8"))

const withoutComments = (text: string): string => text.replaceAll(/\/\*.*?\*\//gs, "")

describe("the emitted client", () => {
  it.each([".js", ".d.ts"])("imports nothing but itself: %s", (end) => {
    const files = contents(emitted, end)
    expect(files).toHaveLength(contents(clientFolder, ".ts").length)
    const specifiers = files
      .map(withoutComments)
      .flatMap((text) =>
        [
          ...text.matchAll(/\b(?:from|import|require)\s*\(?\s*["']([^"']+)["']/g),
          ...text.matchAll(/<reference (.*)\/>/g)
        ].map((match) => match[1]!)
      )
    expect(specifiers.length).toBeGreaterThan(5)
    expect(specifiers.filter((specifier) => !/^\.\/[A-Z]\w+\.(js|ts)$/.test(specifier))).toEqual([])
  })

  it("is less than 6 KB, minified and compressed", async () => {
    const bundle = await rolldown({ input: join(emitted, "index.js") })
    const { output } = await bundle.generate({ format: "esm", minify: true })
    await bundle.close()
    expect(output).toHaveLength(1)
    expect(output[0].imports).toEqual([])
    expect(output[0].exports).toContain("PromptClient")
    expect(gzipSync(output[0].code).length).toBeLessThan(6_000)
  })

  it("has types without the web's, Node's or any other library", () => {
    compileUsers(
      emitted,
      {
        "user.mts": `
import { NotFoundError, PromptClient, type Signal } from "prompt-retrieval/client"
declare const signal: Signal
const client = new PromptClient({ apiKey: "k", fetch: async () => ({
  status: 200, headers: { get: () => null }, body: null, text: async () => "" }) })
const { data, source } = await client.prompts.get("p", { signal })
export const title: string = data.title
export const from: "fresh" | "cached" | "stale" = source
// @ts-expect-error A type that came out as any would let this pass.
export const wrong: number = data.title
// @ts-expect-error No such type of prompt.
client.prompts.list({ type: "poem" })
// @ts-expect-error The key is needed.
new PromptClient({})
// @ts-expect-error Versions have numbers.
client.prompts.versions.get("p", "1")
for await (const { id } of client.prompts.list()) { const text: string = id; void text }
export const code = (error: unknown): string => error instanceof NotFoundError ? error.code : ""
`
      },
      ["ES2022"]
    )
  })
})

describe("the documentation", () => {
  const examples = contents(clientFolder, ".ts").flatMap((text) =>
    [...text.matchAll(/@example\n\s*\* ```ts\n(.*?)\s*\* ```/gs)].map((match) =>
      match[1]!.replaceAll(/^ *\* ?/gm, "")
    )
  )

  it("has an example that compiles for every public function", () => {
    for (const call of [
      "new PromptClient(",
      "prompts.list(",
      "prompts.get(",
      "prompts.getResolved(",
      "versions.list(",
      "versions.get(",
      "fillSlots("
    ]) {
      expect(examples.some((example) => example.includes(call))).toBe(true)
    }
    compileUsers(
      emitted,
      Object.fromEntries(examples.map((example, index) => [`example${index}.mts`, example])),
      ["ES2022", "DOM"]
    )
  })
})
