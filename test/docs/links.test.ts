import { existsSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { documents, readDocument, resolveLink, root } from "./markdown.ts"

/** Returns the anchor that GitHub gives a heading. */
const toAnchor = (heading: string): string =>
  heading
    .replaceAll(/`|\[([^\]]*)\]\([^)]*\)/g, "$1")
    .trim()
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N} _-]/gu, "")
    .replaceAll(" ", "-")

const withoutCode = (text: string): string => text.replaceAll(/^( *)```.*?^\1```$/gms, "")

const findAnchors = (document: string): ReadonlyArray<string> =>
  [...withoutCode(readDocument(document)).matchAll(/^#+ (.+)$/gm)].map(({ 1: heading }) => toAnchor(heading!))

it.each(documents)("the relative links in %s lead only to files and headings that exist", (document) => {
  const links = [...withoutCode(readDocument(document)).matchAll(/\]\(([^)\s]+)\)/g)].map(
    ({ 1: target }) => target!
  )
  const broken = links.filter((link) => {
    if (/^[a-z]+:/.test(link)) return false
    const [target = "", anchor] = link.split("#")
    const file = target === "" ? document : resolveLink(document, target)
    if (!existsSync(join(root, file))) return true
    return anchor !== undefined && file.endsWith(".md") && !findAnchors(file).includes(anchor)
  })
  expect(broken).toEqual([])
})
