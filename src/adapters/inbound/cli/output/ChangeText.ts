import type { CallerChange } from "../../../../application/transfer/CallerChanges.ts"
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

const describeCallerChange = (change: CallerChange): string => {
  const { name, new_name, type, new_type, removed_slots, added_slots } = change
  const slots = [...removed_slots.map((slot) => `−${slot}`), ...added_slots.map((slot) => `+${slot}`)]
  const parts = [
    ...(new_name === name ? [] : [`name: ${name} → ${new_name ?? "none"}`]),
    ...(new_type === type || new_type === null ? [] : [`type: ${type} → ${new_type}`]),
    ...(slots.length === 0 ? [] : [`slots: ${slots.join(" ")}`])
  ]
  return toPrintable(`${name}: ${parts.join("; ")}`)
}

/** Lists the changes that can break applications, one per line after a heading. */
export const listCallerChanges = (changes: ReadonlyArray<CallerChange>): ReadonlyArray<string> =>
  changes.length === 0
    ? []
    : ["", "These changes can break applications:", ...changes.map(describeCallerChange), ""]
