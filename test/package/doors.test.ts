import { readFileSync } from "node:fs"
import { join } from "node:path"
import { build, type Metafile } from "esbuild"
import { beforeAll, describe, expect, it } from "vitest"

const root = join(import.meta.dirname, "../..")
const [index, administration] = ["src/index.ts", "src/administration.ts"]
const [main, commandLine, service] = ["src/main.ts", "src/runtime/CommandLine.ts", "src/runtime/Service.ts"]

describe("the modules that an entry point loads at its start", () => {
  let inputs: Metafile["inputs"]
  beforeAll(async () => {
    const { metafile } = await build({
      absWorkingDir: root,
      entryPoints: [index, administration, main, commandLine, service],
      ...{ bundle: true, splitting: true, write: false, metafile: true, outdir: "out" },
      ...{ packages: "external", format: "esm", platform: "node" }
    })
    inputs = metafile.inputs
  })

  /** Returns the modules of `src` that an entry point loads with static imports. */
  const listModules = (entry: string): ReadonlyArray<string> => {
    const found = new Set([entry])
    for (const path of found)
      for (const { kind, path: imported, external } of inputs[path]?.imports ?? [])
        if (kind === "import-statement" && external !== true) found.add(imported)
    return [...found]
  }

  it("src/index.ts loads at most 8,500 lines, and no module that writes to the database", () => {
    const modules = listModules(index)
    const lines = modules.map((path) => readFileSync(join(root, path), "utf8").split("\n").length - 1)
    expect(modules.length).toBeGreaterThan(50)
    expect(lines.reduce((sum, count) => sum + count)).toBeLessThanOrEqual(8_500)
    expect(
      modules.filter((path) => /transfer|administration|embedded|Migrations|\/cli\//.test(path))
    ).toEqual([])
  })

  it("serve loads no module of MCP, Redis, the other commands or the embedded database unless the configuration needs the module", () => {
    const optional =
      /mcp|[Rr]edis|\/cli\/(Commands\.ts|commands)|embedded\/|WorkspaceStore\.ts|Administration\.ts|ProcessMetrics/
    for (const entry of [commandLine, service])
      expect(listModules(entry).filter((path) => optional.test(path))).toEqual([])
  })

  it("src/administration.ts loads no module that serves requests", () => {
    expect(
      listModules(administration).filter((path) => /inbound\/(http|mcp)|Service\.ts/.test(path))
    ).toEqual([])
  })
})
