import * as TextDiff from "effect/TextDiff"
import type { BreakingChange } from "../../../../application/transfer/BreakingChanges.ts"
import type { FileChange } from "../../../../application/transfer/FileImport.ts"
import type { Texts } from "../../../../application/transfer/PromptFile.ts"
import {
  type FragmentNames,
  renderEarlierFile,
  renderState
} from "../../../../application/transfer/PromptFileText.ts"
import { toPrintable, toPrintableText } from "./Output.ts"

/**
 * Maximum number of differing lines. The time to compute a diff grows with the number of differing lines and with the
 * length of the texts.
 */
const maxDifferentLines = 2_000

/**
 * Compares two texts by line, and returns the diff in the unified format without file headers. Returns the empty text
 * if the texts are equal, and `undefined` if more than `maxDifferentLines` lines differ.
 */
export const diffTexts = (before: string, after: string): string | undefined => {
  const edits = TextDiff.lines(before, after, { maxEdits: maxDifferentLines })
  const count = edits.reduce((sum, { _tag, items }) => sum + (_tag === "Equal" ? 0 : items.length), 0)
  return count > maxDifferentLines ? undefined : TextDiff.unified(edits)
}

const toUnixText = (text: string): string => text.replaceAll("\r\n", "\n")

/**
 * Returns the texts of a file before and after a change. If the file does not exist, the first text shows the state
 * before the change, and the second text is empty.
 */
const renderTexts = (
  { path, before, after }: FileChange,
  texts: Texts,
  fragmentNames: FragmentNames
): readonly [before: string, after: string] => {
  const text = texts.get(path ?? "")
  if (path === null || text === undefined || after === null)
    return [before === null ? "" : renderState(before, fragmentNames), ""]
  const earlier = before === null ? "" : renderEarlierFile(path, text, { before, after }, fragmentNames)
  return [toUnixText(earlier), toUnixText(text)]
}

/**
 * Renders one change of an import of files as a unified diff. The added lines and the unchanged lines are lines of the
 * file. The removed lines are the lines that an export would write for the state in the workspace. If the change
 * archives a prompt, the diff is empty, because the prompt keeps its content.
 */
export const renderDiff = (change: FileChange, texts: Texts, fragmentNames: FragmentNames): string => {
  if (change.kind === "prompt" && change.after === null) return ""
  const diff = diffTexts(...renderTexts(change, texts, fragmentNames))
  if (diff === undefined) return `(more than ${maxDifferentLines} lines differ)`
  return toPrintableText(diff.slice(0, -1))
}

const describeBreakingChange = (change: BreakingChange): string => {
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
export const listBreakingChanges = (changes: ReadonlyArray<BreakingChange>): ReadonlyArray<string> =>
  changes.length === 0
    ? []
    : ["", "These changes can break applications:", ...changes.map(describeBreakingChange), ""]
