import { readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { documents, readDocument, root } from "./markdown.ts"

const getTarball = (folder: string): string => {
  const { name, version } = JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8"))
  return `${name.replace("@", "").replace("/", "-")}-${version}.tgz`
}

it("the documents name the tarballs of the current versions, and no other tarballs", () => {
  const named = documents.flatMap(
    (document) => readDocument(document).match(/\bprompt-retrieval-[\w.-]+\.tgz/g) ?? []
  )
  expect([...new Set(named)].toSorted()).toEqual([getTarball("."), getTarball("client")].toSorted())
})

it("in the documents, npm install names a tarball by a path that begins with ./, because npm takes folder/name for a GitHub repository", () => {
  const named = documents.flatMap(
    (document) => readDocument(document).match(/\bnpm install [^`\n]*\.tgz/g) ?? []
  )
  expect(named.length).toBeGreaterThan(2)
  expect(named.filter((command) => !/ \.\/[^ ]+\.tgz$/.test(command))).toEqual([])
})
