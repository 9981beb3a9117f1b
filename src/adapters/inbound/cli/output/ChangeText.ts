import type { FileChange } from "../../../../application/transfer/FileImport.ts"
import { type FragmentNames, renderState } from "../../../../application/transfer/PromptFile.ts"
import { toPrintable } from "./Output.ts"
import { diffTexts, maxDifferentLines } from "./TextDiff.ts"

/** Replaces the control characters of a line, except tabs. */
const toPrintableLine = (line: string): string => line.split("\t").map(toPrintable).join("\t")

/**
 * Renders one change of an import of files as a unified diff, from the state in the workspace to the state after the
 * import. Both states are rendered in the same way, so the diff shows neither the formatting of the files nor the ids
 * in them. If the change archives a prompt, the diff is empty, because the prompt keeps its content.
 */
export const renderDiff = ({ kind, before, after }: FileChange, fragmentNames: FragmentNames): string => {
  if (kind === "prompt" && after === null) return ""
  const render = (state: FileChange["before"]) => (state === null ? "" : renderState(state, fragmentNames))
  const diff = diffTexts(render(before), render(after))
  if (diff === undefined) return `(more than ${maxDifferentLines} lines differ)`
  return diff.slice(0, -1).split("\n").map(toPrintableLine).join("\n")
}

export const describeChange = ({ kind, id, path, name, change }: FileChange): string =>
  toPrintable(`${change}: ${kind} ${path ?? id} (${name})`)
