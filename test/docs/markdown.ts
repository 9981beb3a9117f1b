import { globSync, readFileSync } from "node:fs"
import { dirname, join, relative } from "node:path"

export const root = join(import.meta.dirname, "../..")

export interface CodeBlock {
  /** The first word after the fence, such as `ts`. */
  readonly language: string
  readonly code: string
  /** The line of the opening fence, counted from 1. */
  readonly line: number
}

/** The paths of all Markdown files of the repository, relative to its root. */
export const documents: ReadonlyArray<string> = globSync("**/*.md", {
  cwd: root,
  exclude: ["**/node_modules", "**/dist", "**/.*"]
}).sort()

export const readDocument = (path: string): string => readFileSync(join(root, path), "utf8")

export const readCodeBlocks = (path: string): ReadonlyArray<CodeBlock> => {
  const text = readDocument(path)
  return [...text.matchAll(/^( *)```(\S*)[^\n]*\n(.*?)^\1```$/gms)].map(
    ({ 1: indent, 2: language, 3: body, index }) => ({
      language: language!,
      code: body!.replaceAll(new RegExp(`^${indent}`, "gm"), ""),
      line: text.slice(0, index).split("\n").length
    })
  )
}

/**
 * Returns the modules that the `ts` blocks of a document form, each with the line of its first block. A block that starts
 * with an import begins a module. Every other block continues the previous module after an empty line.
 */
export const readModules = (path: string): ReadonlyArray<Pick<CodeBlock, "code" | "line">> => {
  const modules: Array<{ code: string; readonly line: number }> = []
  for (const { language, code, line } of readCodeBlocks(path)) {
    if (language !== "ts") continue
    const current = modules.at(-1)
    if (current === undefined || code.startsWith("import ")) modules.push({ code, line })
    else current.code += `\n${code}`
  }
  return modules
}

/** Returns the rows of the table under a heading, without the head of the table. Each row is a list of cells. */
export const readTable = (path: string, heading: string): ReadonlyArray<ReadonlyArray<string>> => {
  const section = readDocument(path)
    .split(/^#+ /m)
    .find((section) => section.startsWith(`${heading}\n`))
  if (section === undefined) throw new Error(`${path} has no heading ${heading}`)
  return section
    .split("\n")
    .filter((line) => line.startsWith("|"))
    .slice(2)
    .map((line) =>
      line
        .split(/(?<!\\)\|/)
        .slice(1, -1)
        .map((cell) => cell.trim())
    )
}

/** Returns the path, relative to the root of the repository, of the file to which a link in a document leads. */
export const resolveLink = (document: string, target: string): string =>
  relative(root, join(root, dirname(document), target))
