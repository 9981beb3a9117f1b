import { formatPatch, OMIT_HEADERS, structuredPatch } from "diff"
import type { FileChange } from "../../../../application/formats/files/ContentFile.ts"
import { toPrintable } from "./Output.ts"
import { renderState } from "../files/PromptText.ts"

/** The most lines that differ between two texts whose diff is computed: the time grows with their square. */
const maxDifferentLines = 2_000

/** Replaces control characters except tabs, which texts contain. */
const toPrintableLine = (line: string): string => line.split("\t").map(toPrintable).join("\t")

const diffTexts = (before: string, after: string): string => {
  const patch = structuredPatch("", "", before, after, undefined, undefined, {
    context: 3,
    maxEditLength: maxDifferentLines
  })
  if (patch === undefined) return `(more than ${maxDifferentLines} lines differ)`
  const lines = formatPatch(patch, OMIT_HEADERS).slice(0, -1).split("\n")
  return lines.map(toPrintableLine).join("\n")
}

/**
 * Renders a change of an import of files as a unified diff between the texts of two files: what the workspace has,
 * and what it gets. Only lines of text differ: formatting and ids of files do not count. An archived prompt keeps
 * its content, so its diff is empty.
 *
 * @param fragmentPaths the paths of the fragments' files by id
 */
export const renderDiff = (
  { kind, before, after }: FileChange,
  fragmentPaths: ReadonlyMap<string, string>
): string => {
  if (kind === "prompt" && after === null) return ""
  const render = (state: FileChange["before"]) => (state === null ? "" : renderState(state, fragmentPaths))
  return diffTexts(render(before), render(after))
}

/** Describes a change in one line. */
export const describeChange = ({ kind, id, path, name, change }: FileChange): string =>
  toPrintable(`${change}: ${kind} ${path ?? id} (${name})`)
