import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { parseAllDocuments } from "yaml"
import { bin, run } from "../support/programs/packages.ts"
import { documents, readCodeBlocks, readModules, root } from "./markdown.ts"

/** This folder is in `node_modules`, so that code from the documents can import the packages of the project. */
const cache = join(root, "node_modules/.cache")
mkdirSync(cache, { recursive: true })
const folder = mkdtempSync(join(cache, "docs-"))
afterAll(() => rmSync(folder, { recursive: true }))

const findBlocks = (...languages: ReadonlyArray<string>) =>
  documents.flatMap((document) =>
    readCodeBlocks(document)
      .filter(({ language }) => languages.includes(language))
      .map(({ code, line }) => ({ place: `${document}:${line}`, code }))
  )

const compilerOptions = {
  noUnusedLocals: false,
  noUnusedParameters: false,
  rootDirs: [".", join(root, "examples")]
}

// `test/system/docs/models.test.ts` type-checks docs/models.md, because `test/tools` has the packages of this document.
it("every ts block of the documents except docs/models.md type-checks", async () => {
  const files = documents
    .filter((document) => document !== "docs/models.md")
    .flatMap((document) =>
      readModules(document).map(({ line, code }) => {
        const file = `${document.replaceAll("/", "-")}-${line}.mts`
        writeFileSync(join(folder, file), code)
        return file
      })
    )
  const config = { extends: join(root, "tsconfig.json"), compilerOptions, files, include: [] }
  writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
  expect(await run(folder, bin("tsc"), ["-p", "."])).toEqual({ code: 0, stdout: "", stderr: "" })
}, 120_000)

it.each(findBlocks("sh", "bash"))("bash parses the code block at $place", ({ code }) => {
  const { status, stderr } = spawnSync("bash", ["-n"], { input: code, encoding: "utf8" })
  expect({ status, stderr }).toEqual({ status: 0, stderr: "" })
})

it.each(findBlocks("json"))("the code block at $place is valid JSON", ({ code }) => {
  JSON.parse(code)
})

it.each(findBlocks("yaml"))("the code block at $place is valid YAML", ({ code }) => {
  expect(parseAllDocuments(code).flatMap(({ errors }) => errors)).toEqual([])
})

it("code blocks use only one name for each checked language, such as ts but not typescript", () => {
  expect(findBlocks("typescript", "js", "javascript", "shell", "console", "jsonc", "yml")).toEqual([])
})
