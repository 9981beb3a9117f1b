import { structuredPatch } from "diff"
import type { FileChange } from "../../../../application/formats/files/PromptFiles.ts"
import { toPrintable } from "./Output.ts"
import { renderFragmentState, renderPromptState } from "../files/PromptText.ts"

/** The most lines that differ between two texts whose diff is computed: the time grows with their square. */
const maxDifferentLines = 2_000

/** Replaces control characters except tabs, which texts contain. */
const toPrintableLine = (line: string): string => line.split("\t").map(toPrintable).join("\t")

/** Returns a range of lines as a unified diff names it: an empty range has the line before it. */
const describeRange = (start: number, lines: number): string => `${lines === 0 ? start - 1 : start},${lines}`

const diffTexts = (path: string, before: string, after: string): string => {
  const patch = structuredPatch(path, path, before, after, undefined, undefined, {
    context: 3,
    maxEditLength: maxDifferentLines
  })
  if (patch === undefined) return `(more than ${maxDifferentLines} lines differ)`
  return patch.hunks
    .flatMap(({ oldStart, oldLines, newStart, newLines, lines }) => [
      `@@ -${describeRange(oldStart, oldLines)} +${describeRange(newStart, newLines)} @@`,
      ...lines.map(toPrintableLine)
    ])
    .join("\n")
}

/**
 * Renders a change of an import of files as a unified diff between the texts of two files: what the workspace has,
 * and what it gets. Only lines of text differ: formatting and ids of files do not count. An archived prompt keeps
 * its content, so its diff is empty.
 *
 * @param fragmentPaths the paths of the fragments' files by id
 */
export const renderDiff = (change: FileChange, fragmentPaths: ReadonlyMap<string, string>): string => {
  const path = change.path ?? change.name
  if (change.kind === "fragment") {
    const [before, after] = [change.before, change.after].map((state) =>
      state === null ? "" : renderFragmentState(state)
    )
    return diffTexts(path, before ?? "", after ?? "")
  }
  if (change.after === null) return ""
  const before = change.before === null ? "" : renderPromptState(change.before, fragmentPaths)
  return diffTexts(path, before, renderPromptState(change.after, fragmentPaths))
}

/** Describes a change in one line. */
export const describeChange = ({ kind, id, path, name, change }: FileChange): string =>
  toPrintable(`${change}: ${kind} ${path ?? id} (${name})`)
