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
