import { existsSync, globSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import type { PromptApi, PromptApiOptions } from "../../src/index.ts"
import { parseOptions } from "../../src/runtime/PromptApiOptions.ts"
import { documents, readDocument, readModules, readTable, resolveLink, root } from "./markdown.ts"

const readJson = (path: string) => JSON.parse(readFileSync(join(root, path), "utf8"))

/** Returns the anchor that GitHub gives a heading. */
const toAnchor = (heading: string): string =>
  heading
    .replaceAll(/`|\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-")

const readText = (document: string) => readDocument(document).replaceAll(/^( *)```.*?^\1```$/gms, "")

const hasAnchor = (document: string, anchor: string): boolean =>
  [...readText(document).matchAll(/^#+ (.+)$/gm)].some(({ 1: heading }) => toAnchor(heading!) === anchor)

it.each(documents)("the relative links in %s lead only to files and headings that exist", (document) => {
  const links = [...readText(document).matchAll(/\]\((?![a-z]+:)([^)\s]+)\)/g)].map(({ 1: link }) => link!)
  const broken = links.filter((link) => {
    const [path, anchor] = link.split("#") as [string, string?]
    const target = path === "" ? document : resolveLink(document, path)
    if (!existsSync(join(root, target))) return true
    return anchor !== undefined && target.endsWith(".md") && !hasAnchor(target, anchor)
  })
  expect(broken).toEqual([])
})

/** The paths of all files and folders that git does not ignore, and of the outputs that documents name. */
const paths = new Set([
  ...globSync("**", { cwd: root, exclude: ["**/node_modules", "**/dist", ".git", ".data"] }),
  ...["bench/results", "prompts.ts"]
])

/**
 * Returns true if a name looks like the path of a source file or of a folder with source files. In the documents, a path
 * that begins with `./` is a path of an application.
 */
const isSourcePath = (name: string): boolean =>
  /^(?!\.\/)[\w.-]+(\/[\w.-]+)*\.ts$/.test(name) ||
  /^(src|test|bench|docs|deploy|examples|client)\/[\w./-]+$/.test(name)

/** Returns the names that are in backticks in a document and look like paths. */
const listPaths = (document: string): ReadonlyArray<string> =>
  [...readDocument(document).matchAll(/`([^`\n]+)`/g)].map(([, name]) => name!).filter(isSourcePath)

/** Returns the paths that a name can mean: the exact path, or every path that ends with the name. */
const findPaths = (name: string): ReadonlyArray<string> => {
  const path = name.replace(/\/$/, "")
  return paths.has(path) ? [path] : [...paths].filter((candidate) => candidate.endsWith(`/${path}`))
}

// The test excludes CHANGELOG.md, because this document also names files of earlier versions.
it.each(documents.filter((document) => document !== "CHANGELOG.md"))(
  "%s names only files and folders that exist, each with enough of its path to be unambiguous",
  (document) => {
    expect(listPaths(document).filter((name) => findPaths(name).length !== 1)).toEqual([])
  }
)

const readExample = (path: string): string =>
  readFileSync(join(root, path), "utf8").replace(/^\/\*\*.*?\*\/\n/s, "")

/** Returns the path of the example to which the last link before a line of a document leads. */
const findExample = (document: string, line: number): string => {
  const before = readDocument(document).split("\n").slice(0, line).join("\n")
  const target = [...before.matchAll(/\]\((\.\.\/examples\/[^)]+)\)/g)].at(-1)
  if (target === undefined) throw new Error(`${document}:${line} follows no link to an example`)
  return resolveLink(document, target[1]!)
}

// `client/test/examples.test.ts`, `test/embedding` and `test/system/docs` run the examples.
it.each(
  ["docs/client.md", "docs/embedding.md"].flatMap((document) =>
    readModules(document).map(({ code, line }) => ({ document, line, code }))
  )
)(
  "the code at $document:$line equals the example to which the last link before the code leads",
  ({ document, line, code }) => {
    expect(code).toBe(readExample(findExample(document, line)))
  }
)

it("the documents name only the tarballs of the current versions, and npm install names each tarball by a path that begins with ./", () => {
  const text = documents.map(readDocument).join("\n")
  const tarballs = [".", "client"].map((folder) => {
    const { name, version } = readJson(join(folder, "package.json"))
    return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`
  })
  expect(new Set(text.match(/\bprompt-retrieval-[\w.-]+\.tgz/g))).toEqual(new Set(tarballs))
  const commands = text.match(/\bnpm install [^`\n]*\.tgz/g) ?? []
  expect(commands.length).toBeGreaterThan(2)
  expect(commands.filter((command) => !/ \.\/[^ ]+\.tgz$/.test(command))).toEqual([])
})

const readNames = (heading: string) =>
  readTable("docs/embedding.md", heading).map(([name]) => name!.replaceAll("`", ""))

it("the tables in docs/embedding.md list all options of createPromptApi and all members of its API", () => {
  const members = { handler: true, prompts: true, metrics: true, close: true } satisfies Record<
    keyof PromptApi,
    true
  >
  const options = { databaseUrl: "postgres://host/database", unknown: true }
  const message = `unknown is unknown; the options are ${readNames("Create the API").join(", ")}`
  expect(() => parseOptions(options as PromptApiOptions)).toThrow(new TypeError(message))
  expect(readNames("Members of the API")).toEqual(Object.keys(members))
})

it("docs/embedding.md states the versions of Node and Effect that the package needs", () => {
  const { engines, peerDependencies } = readJson("package.json")
  const text = readDocument("docs/embedding.md")
  expect(text).toContain(`needs Node ${engines.node.replace(">=", "")} or later`)
  expect(text).toContain(`(\`${peerDependencies.effect}\`)`)
})
