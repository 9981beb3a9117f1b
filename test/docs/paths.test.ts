import { readdirSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { documents, readDocument, root } from "./markdown.ts"

/** The paths that documents may name although version control does not contain them. */
const outputs = ["bench/results", "prompts.ts"]

/** The paths of all files and folders that can be in version control, relative to the root. */
const paths: ReadonlySet<string> = new Set(
  readdirSync(root, { withFileTypes: true })
    .filter(({ name }) => !["node_modules", "dist", ".git", ".data"].includes(name))
    .flatMap((entry) =>
      entry.isDirectory()
        ? [
            entry.name,
            ...readdirSync(join(root, entry.name), { recursive: true, encoding: "utf8" }).map(
              (path) => `${entry.name}/${path}`
            )
          ]
        : [entry.name]
    )
    .filter((path) => !path.includes("/node_modules/"))
    .concat(outputs)
)

/**
 * Returns true if a name looks like the path of a source file or of a folder with source files. A path that begins with
 * `./` belongs to an application.
 */
const isSourcePath = (name: string): boolean =>
  /^(?!\.\/)[\w.-]+(\/[\w.-]+)*\.ts$/.test(name) ||
  /^(src|test|bench|docs|deploy|examples|client)\/[\w./-]+$/.test(name)

/** Returns `a/b.ts` and `a/c.ts` for `a/{b,c}.ts`. */
const expand = (name: string): ReadonlyArray<string> => {
  const [, before, names, after] = /^(.*)\{([\w,]+)\}(.*)$/.exec(name) ?? []
  return names === undefined ? [name] : names.split(",").map((each) => `${before}${each}${after}`)
}

/** Returns the names that are in backticks in a document and look like paths, without duplicates. */
const listPaths = (document: string): ReadonlyArray<string> => [
  ...new Set(
    [...readDocument(document).matchAll(/`([^`\n]+)`/g)]
      .flatMap(([, name]) => expand(name!))
      .filter(isSourcePath)
  )
]

/** Returns the paths that a name in a document can mean: the exact path, or every path that ends with the name. */
const findPaths = (name: string): ReadonlyArray<string> => {
  const path = name.replace(/\/$/, "")
  return paths.has(path) ? [path] : [...paths].filter((candidate) => candidate.endsWith(`/${path}`))
}

// CHANGELOG.md is excluded, because it also names files of earlier versions.
it.each(documents.filter((document) => document !== "CHANGELOG.md" && listPaths(document).length > 0))(
  "%s names only files and folders that exist, each with enough of its path to be unambiguous",
  (document) => {
    const wrong = listPaths(document).filter((name) => findPaths(name).length !== 1)
    expect(wrong).toEqual([])
  }
)
