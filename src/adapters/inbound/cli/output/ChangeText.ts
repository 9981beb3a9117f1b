import { structuredPatch } from "diff"
import type { FileChange } from "../../../../application/formats/PromptFiles.ts"
import { toPrintable } from "./Output.ts"
import { renderFragmentState, renderPromptState } from "../PromptText.ts"

/** Maximum number of differing lines for which a diff is computed: the time grows with the square of this number. */
const maxDifferentLines = 2_000

/** Replaces control characters except tabs, which texts contain. */
const toPrintableLine = (line: string): string => line.split("\t").map(toPrintable).join("\t")

/** Returns a range of lines in the form of a unified diff. An empty range has the number of the line before it. */
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
 * Renders a change of an import of files as a unified diff between two files: the state in the workspace, and the
 * state after the import. The diff shows only changed text: the formatting and the ids of the files do not matter. An
 * archived prompt keeps its content, so its diff is empty.
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
