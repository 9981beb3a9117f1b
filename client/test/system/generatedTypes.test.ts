import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { beforeAll, describe, expect, it } from "vitest"
import { bin, install, makeProject, pack, run } from "../../../test/support/programs/packages.ts"
import { findTool } from "../../../test/support/programs/tools.ts"
import { renderBundle } from "../../src/pull/BundleFile.ts"
import { renderTypes } from "../../src/pull/TypesFile.ts"
import { bundledPrompt } from "../pull/bundles.ts"

const client = join(import.meta.dirname, "../..")

/** Titles and slots that are difficult for a generator. */
const difficult = [
  "*/ export const injected = 1 /*",
  "line\u2028separator\nand `template`",
  "日本語 の プロンプト",
  "😀"
]

/** Names that are difficult for a generator. */
const difficultNames =
  "delete global-this 3-tips gpt-4 _ module exports require arguments undefined async type string constructor".split(
    " "
  )

const generated = renderTypes([
  bundledPrompt({ name: "support-agent", content: "{{shop}}" }),
  bundledPrompt({ name: "order", content: '{{order_id}} {{a "b"}} {{\u202e}} {{\\}}' }),
  ...difficult.map((title, index) =>
    bundledPrompt({ name: `difficult-${index}`, title, content: `{{${title}}}` })
  ),
  ...difficultNames.map((name) => bundledPrompt({ name, title: name, content: "" }))
])

/** Uses the constants as an application does. The lines with an expected error must not compile. */
const user = `
import { fillSlots, type PromptBundle, PromptClient, verifyBundle } from "@prompt-retrieval/client"
import bundle from "./bundle.json" with { type: "json" }
import * as prompts from "./prompts.js"

/** TypeScript's type of the imported file is the type of a bundle. */
export const typed: PromptBundle = bundle

export const use = async (): Promise<void> => {
  await verifyBundle(bundle)
  const client = new PromptClient({ apiKey: "k" })
  const { data: agent } = await client.prompts.getResolved(prompts.supportAgent)
  fillSlots(agent, { shop: "Acme" })
  // @ts-expect-error The variable is missing.
  fillSlots(agent, {})
  // @ts-expect-error There is no such slot.
  fillSlots(agent, { shop: "Acme", store: "Acme" })
  const { data: order } = await client.prompts.getResolved(prompts.order)
  fillSlots(order, { order_id: "1", 'a "b"': "2", "\\u202e": "3", "\\\\": "4" })
  // @ts-expect-error There is no such prompt.
  prompts.supportBot
  // @ts-expect-error A constant cannot be changed.
  prompts.supportAgent.name = ""
  // @ts-expect-error A title adds no code.
  prompts.injected
}
`

const compilers: Readonly<Record<string, string>> = {
  "5.4": "typescript-5.4",
  "5.9": "typescript-5.9",
  "6.0": "typescript"
}

describe("prompts.ts", () => {
  let project: string
  beforeAll(async () => {
    project = makeProject("generated-types")
    await install(project, await pack(client))
    const bundle = renderBundle([bundledPrompt(), bundledPrompt({ content: "" })])
    writeFileSync(join(project, "bundle.json"), bundle)
    writeFileSync(join(project, "prompts.ts"), generated)
    writeFileSync(join(project, "user.ts"), user)
    // The compiler emits this module as CommonJS.
    mkdirSync(join(project, "common"))
    writeFileSync(join(project, "common/package.json"), '{"type":"commonjs"}')
    writeFileSync(join(project, "common/prompts.ts"), generated)
  })

  const compile = async (version: string, options: object) => {
    const compilerOptions = {
      target: "ES2022",
      strict: true,
      exactOptionalPropertyTypes: true,
      isolatedModules: true,
      // TypeScript 5.5 introduced this option.
      ...(version !== "5.4" && { isolatedDeclarations: true }),
      declaration: true,
      noUnusedLocals: true,
      skipLibCheck: false,
      resolveJsonModule: true,
      types: [],
      lib: ["ES2022"],
      outDir: `out-${version}`,
      rootDir: ".",
      ...options
    }
    writeFileSync(
      join(project, "tsconfig.json"),
      JSON.stringify({ compilerOptions, files: ["user.ts", "common/prompts.ts"] })
    )
    const compiler = compilers[version]
    return compiler === undefined
      ? run(project, bin("tsc"), ["-p", "."])
      : run(project, process.execPath, [findTool(`${compiler}/bin/tsc`), "-p", "."])
  }
  const success = { code: 0, stdout: "", stderr: "" }

  it.each([...Object.keys(compilers), "7.0"])(
    "prompts.ts compiles with TypeScript %s, wrong uses do not compile, and as a CommonJS module it exports every constant",
    async (version) => {
      expect(await compile(version, { module: "NodeNext", moduleResolution: "NodeNext" })).toEqual(success)
      writeFileSync(join(project, `out-${version}/package.json`), '{"type":"commonjs"}')
      const script = `console.log(Object.values(require("./out-${version}/common/prompts.js")).length)`
      const { stdout } = await run(project, process.execPath, ["--input-type=commonjs", "--eval", script])
      expect(stdout).toBe(`${2 + difficult.length + difficultNames.length}\n`)
    }
  )

  it("prompts.ts compiles with the settings for a bundler", async () => {
    const options = { module: "ESNext", moduleResolution: "Bundler", verbatimModuleSyntax: true }
    expect(await compile("7.0", options)).toEqual(success)
  })
})
