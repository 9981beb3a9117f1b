import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { readDocument, readModules, resolveLink, root } from "./markdown.ts"

const readExample = (path: string): string =>
  readFileSync(join(root, path), "utf8").replace(/^\/\*\*.*?\*\/\n/s, "")

/** Returns the target of the last link to an example before a line of a document. */
const findExample = (document: string, line: number): string => {
  const before = readDocument(document).split("\n").slice(0, line).join("\n")
  const target = [...before.matchAll(/\]\((\.\.\/examples\/[^)]+)\)/g)].at(-1)
  if (target === undefined) throw new Error(`${document}:${line} follows no link to an example`)
  return resolveLink(document, target[1]!)
}

// `client/test/examples.test.ts`, `test/embedding` and `test/system/docs` run the examples.
it.each(
  ["docs/client.md", "docs/embedding.md", "docs/recipes.md"].flatMap((document) =>
    readModules(document).map(({ code, line }) => ({ document, line, code }))
  )
)(
  "the code at $document:$line equals the example to which the last link before the code leads",
  ({ document, line, code }) => {
    expect(code).toBe(readExample(findExample(document, line)))
  }
)
