import { formatPatch, OMIT_HEADERS, structuredPatch } from "diff"
import type { BundledPrompt } from "../Bundle.ts"
import { printable } from "./CommandError.ts"

export interface Comparison {
  readonly added: ReadonlyArray<BundledPrompt>
  readonly removed: ReadonlyArray<BundledPrompt>
  readonly changed: ReadonlyArray<readonly [before: BundledPrompt, after: BundledPrompt]>
}

/** Compares the prompts of two bundles by their ids and hashes. */
export const comparePrompts = (
  before: ReadonlyArray<BundledPrompt>,
  after: ReadonlyArray<BundledPrompt>
): Comparison => {
  const known = new Map(before.map((prompt) => [prompt.id, prompt]))
  const current = new Set(after.map(({ id }) => id))
  return {
    added: after.filter(({ id }) => !known.has(id)),
    removed: before.filter(({ id }) => !current.has(id)),
    changed: after.flatMap((prompt) => {
      const previous = known.get(prompt.id)
      return previous === undefined || previous.sha256 === prompt.sha256 ? [] : [[previous, prompt] as const]
    })
  }
}

/** Describes how many prompts differ, such as `1 added, 2 changed`. */
export const summarize = (comparison: Comparison): string =>
  (["added", "changed", "removed"] as const)
    .filter((kind) => comparison[kind].length > 0)
    .map((kind) => `${comparison[kind].length} ${kind}`)
    .join(", ")

/** Returns a line for each field that a diff compares. */
const listFields = (prompt: BundledPrompt): ReadonlyArray<string> => {
  const { name, title, prompt_type, target_model, version, fragment_count, slots } = prompt
  const fields = { name, title, prompt_type, target_model, version, fragment_count, slots: slots.join(", ") }
  return Object.entries(fields).map(([field, value]) => `${field}: ${value}`)
}

/** Maximum number of differing lines for which a diff is computed: the time grows with the square of this number. */
const maxDifferentLines = 1_000

/** Returns the lines of a unified diff of two contents, without its file headers. */
const diffContents = (before: string | undefined, after: string | undefined): ReadonlyArray<string> => {
  const toText = (content: string | undefined) => (content === undefined ? "" : `${content}\n`)
  const options = { context: 3, maxEditLength: maxDifferentLines, stripTrailingCr: true }
  const patch = structuredPatch("", "", toText(before), toText(after), undefined, undefined, options)
  if (patch === undefined) return [`(more than ${maxDifferentLines} lines differ)`]
  return patch.hunks.length === 0 ? [] : formatPatch(patch, OMIT_HEADERS).slice(0, -1).split("\n")
}

/** Renders one prompt's differences as a unified diff. `undefined` is a prompt that does not exist. */
const diffPrompt = (before: BundledPrompt | undefined, after: BundledPrompt | undefined): string => {
  const { id, title } = (after ?? before)!
  const name = `${id} ${title}`
  const fields = before && after ? listFields(after) : []
  const changes = [
    ...fields.flatMap((field, index) => {
      const previous = listFields(before!)[index]!
      return field === previous ? [] : [`-${previous}`, `+${field}`]
    }),
    ...diffContents(before?.content, after?.content)
  ]
  // Show the change of the ETag only if no other change explains the different hash.
  const lines = changes.length > 0 ? changes : [`-etag: ${before?.etag}`, `+etag: ${after?.etag}`]
  const headers = [`--- ${before ? name : "/dev/null"}`, `+++ ${after ? name : "/dev/null"}`]
  return [...headers, ...lines].map((line) => `${printable(line)}\n`).join("")
}

/**
 * Renders the differences for people, as a unified diff for each prompt, in the order of the ids. Lines have no control
 * characters.
 */
export const renderDiff = ({ added, removed, changed }: Comparison): string =>
  [
    ...added.map((prompt) => [undefined, prompt] as const),
    ...removed.map((prompt) => [prompt, undefined] as const),
    ...changed
  ]
    .map(([before, after]) => ({ id: (after ?? before)!.id, diff: diffPrompt(before, after) }))
    .sort((a, b) => (a.id < b.id ? -1 : 1))
    .map(({ diff }) => diff)
    .join("\n")
