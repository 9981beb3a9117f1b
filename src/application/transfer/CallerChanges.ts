import type { PromptId, PromptType } from "../../domain/Prompt.ts"
import { toName, toSlug } from "../../domain/PromptName.ts"
import { findSlots, toSlotText } from "../../domain/Resolution.ts"
import type { WorkspaceContent } from "../../domain/WorkspaceContent.ts"
import { type ContentItem, type PromptState, readItems } from "./ContentState.ts"
import type { FileChange } from "./FileImport.ts"

/** A prompt as applications see it. */
export interface PromptInterface {
  readonly id: string
  readonly name: string
  readonly type: PromptType
  /** The slots of the resolved content, which applications fill. */
  readonly slots: ReadonlyArray<string>
}

/** A change of a prompt on which applications depend. */
export interface CallerChange {
  /** The name before the change. */
  readonly name: string
  /** The name after the change; null if the prompt is gone. */
  readonly new_name: string | null
  readonly removed_slots: ReadonlyArray<string>
  readonly added_slots: ReadonlyArray<string>
  readonly type: PromptType
  readonly new_type: PromptType | null
}

type LiveItem = Pick<ContentItem, "id" | "state">

/** Returns the slots of a prompt, and the slots of its fragments that the prompt does not bind. */
const listSlots = (
  { current_content, fragments }: PromptState,
  fragmentSlots: ReadonlyMap<string, ReadonlySet<string>>
): ReadonlyArray<string> => {
  const unbound = fragments.flatMap(({ fragment_id, variable_overrides }) =>
    [...(fragmentSlots.get(fragment_id) ?? [])].filter(
      (slot) => !Object.hasOwn(variable_overrides, slot) || toSlotText(variable_overrides[slot]) === undefined
    )
  )
  return [...new Set([...findSlots(current_content), ...unbound])]
}

/**
 * Lists the prompts among the items as applications see them. `createdAt` contains the times of the prompts that a
 * workspace already has; the oldest prompt with a slug has the slug as its name (docs/names.md).
 */
export const listInterfaces = (
  items: ReadonlyArray<LiveItem>,
  createdAt: ReadonlyMap<string, string> = new Map()
): ReadonlyArray<PromptInterface> => {
  const fragmentSlots = new Map(
    items.flatMap(({ id, state }) =>
      state.kind === "fragment" ? [[id, findSlots(state.content)] as const] : []
    )
  )
  const prompts = items.flatMap(({ id, state }) =>
    // A new prompt is younger than all others: "new" sorts after every time.
    state.kind === "prompt" ? [{ id, slug: toSlug(state.title), age: createdAt.get(id) ?? "new", state }] : []
  )
  const owners = new Map<string, string>()
  for (const { id, slug } of prompts.toSorted((a, b) => (`${a.age} ${a.id}` < `${b.age} ${b.id}` ? -1 : 1)))
    if (!owners.has(slug)) owners.set(slug, id)
  return prompts.map(({ id, slug, state }) => ({
    id,
    name: toName({ id: id as PromptId, slug }, { owns_slug: owners.get(slug) === id, owns_digits: true }),
    type: state.prompt_type,
    slots: listSlots(state, fragmentSlots)
  }))
}

/**
 * Compares the prompts of two states, and returns the changes that can break applications, ordered by name. A prompt is
 * compared with the prompt that has the same id or, if there is none, the same name. A new prompt breaks no application.
 */
export const compareInterfaces = (
  before: ReadonlyArray<PromptInterface>,
  after: ReadonlyArray<PromptInterface>
): ReadonlyArray<CallerChange> => {
  const byId = new Map(after.map((prompt) => [prompt.id, prompt]))
  const byName = new Map(after.map((prompt) => [prompt.name, prompt]))
  const ordered = before.toSorted((a, b) => (a.name < b.name ? -1 : 1))
  return ordered.flatMap(({ id, name, type, slots }) => {
    const current = byId.get(id) ?? byName.get(name)
    const newSlots = current?.slots ?? slots
    const change: CallerChange = {
      name,
      new_name: current?.name ?? null,
      removed_slots: slots.filter((slot) => !newSlots.includes(slot)),
      added_slots: newSlots.filter((slot) => !slots.includes(slot)),
      type,
      new_type: current?.type ?? null
    }
    const isSame =
      change.new_name === name &&
      change.new_type === type &&
      change.removed_slots.length + change.added_slots.length === 0
    return isSame ? [] : [change]
  })
}

/** Returns the changes of an import that can break applications. `content` is the workspace before the import. */
export const findCallerChanges = (
  content: WorkspaceContent,
  changes: ReadonlyArray<FileChange>
): ReadonlyArray<CallerChange> => {
  const toKey = ({ id, state: { kind } }: LiveItem) => `${kind} ${id}`
  const live = readItems(content).filter(({ isArchived }) => !isArchived)
  const after = new Map<string, LiveItem>(live.map((item) => [toKey(item), item]))
  for (const { kind, id, after: state } of changes) {
    if (state === null) after.delete(`${kind} ${id}`)
    else after.set(`${kind} ${id}`, { id, state })
  }
  const createdAt = new Map<string, string>(content.prompts.map(({ id, created_at }) => [id, created_at]))
  return compareInterfaces(listInterfaces(live, createdAt), listInterfaces([...after.values()], createdAt))
}
