import type { BundledPrompt } from "../Bundle.ts"
import { type KnownPrompt, type RenderedPrompt, readFields } from "./BundleFile.ts"
import { printable } from "./CommandError.ts"
import { diffLines } from "./LineDiff.ts"

/** The prompts that differ between two bundles. */
export interface Comparison<Prompt extends KnownPrompt> {
  readonly added: ReadonlyArray<Prompt>
  readonly removed: ReadonlyArray<Prompt>
  readonly changed: ReadonlyArray<readonly [before: Prompt, after: Prompt]>
}

/** Compares the prompts of two bundles by their ids and hashes. */
export const comparePrompts = <Prompt extends KnownPrompt>(
  before: ReadonlyArray<Prompt>,
  after: ReadonlyArray<Prompt>
): Comparison<Prompt> => {
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
export const summarize = (comparison: Comparison<KnownPrompt>): string =>
  (["added", "changed", "removed"] as const)
    .filter((kind) => comparison[kind].length > 0)
    .map((kind) => `${comparison[kind].length} ${kind}`)
    .join(", ")

/** The fields that a diff shows, a line each. */
const listFields = ({
  title,
  prompt_type,
  target_model,
  version,
  fragment_count,
  slots
}: BundledPrompt): ReadonlyArray<string> => [
  `title: ${title}`,
  `prompt_type: ${prompt_type}`,
  `target_model: ${target_model}`,
  `version: ${version}`,
  `fragment_count: ${fragment_count}`,
  `slots: ${slots.join(", ")}`
]

const splitLines = (text: string): ReadonlyArray<string> => text.split(/\r?\n/)

/** Renders one prompt's differences as a unified diff. `undefined` is a prompt that does not exist. */
const diffPrompt = (
  before: BundledPrompt | undefined,
  after: BundledPrompt | undefined
): ReadonlyArray<string> => {
  const { id, title } = (after ?? before)!
  const name = `${id} ${title}`
  const toLines = (prompt: BundledPrompt | undefined) => ({
    fields: prompt === undefined ? [] : listFields(prompt),
    content: prompt === undefined ? [] : splitLines(prompt.content)
  })
  const [old, current] = [toLines(before), toLines(after)]
  const changes = [
    ...(before === undefined || after === undefined
      ? []
      : old.fields.flatMap((field, index) => {
          const other = current.fields[index]!
          return field === other ? [] : [`-${field}`, `+${other}`]
        })),
    ...diffLines(old.content, current.content)
  ]
  // A change of the ETag is of interest only if nothing else explains it.
  const isOnlyEtag = changes.length === 0 && before !== undefined && after !== undefined
  return [
    `--- ${before === undefined ? "/dev/null" : name}`,
    `+++ ${after === undefined ? "/dev/null" : name}`,
    ...(isOnlyEtag ? [`-etag: ${before.etag}`, `+etag: ${after.etag}`] : changes)
  ].map(printable)
}

/**
 * Renders the differences for people, as a unified diff for each prompt, in the order of the ids. Lines have no control
 * characters.
 */
export function* renderDiff({ added, removed, changed }: Comparison<RenderedPrompt>): Generator<string> {
  const sections: ReadonlyArray<readonly [RenderedPrompt | undefined, RenderedPrompt | undefined]> = [
    ...added.map((prompt) => [undefined, prompt] as const),
    ...removed.map((prompt) => [prompt, undefined] as const),
    ...changed
  ]
  const getId = ([before, after]: (typeof sections)[number]) => (after ?? before)!.id
  const sorted = sections.toSorted((a, b) => (getId(a) < getId(b) ? -1 : 1))
  for (const [index, [before, after]] of sorted.entries()) {
    const lines = diffPrompt(before && readFields(before), after && readFields(after))
    yield `${index === 0 ? "" : "\n"}${lines.join("\n")}\n`
  }
}
