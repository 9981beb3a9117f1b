import * as Order from "effect/Order"
import * as Result from "effect/Result"
import type { PromptId, PromptType } from "../../domain/Prompt.ts"
import { toName, toSlug } from "../../domain/PromptName.ts"
import { findSlots } from "../../domain/Resolution.ts"
import type { Problem } from "../../domain/WorkspaceContent.ts"
import { WorkspaceId } from "../../domain/WorkspaceId.ts"
import type { ContentState, PromptState } from "./ContentState.ts"
import { findSlotWarnings, listUnbound, type Pair, pairForImport } from "./Pairing.ts"
import { type InvalidFiles, parseFiles, type Texts } from "./PromptFile.ts"

/** The properties of a prompt on which applications depend. */
export interface PromptInterface {
  readonly id: string
  readonly name: string
  readonly type: PromptType
  /** The slots that applications fill in the resolved content. */
  readonly slots: ReadonlyArray<string>
  /** The path of the file; empty if there is no file. */
  readonly path: string
}

/** A change to a prompt that can break applications. */
export interface BreakingChange {
  /** The name before the change. */
  readonly name: string
  /** The name after the change; null if the prompt no longer exists. */
  readonly new_name: string | null
  readonly removed_slots: ReadonlyArray<string>
  readonly added_slots: ReadonlyArray<string>
  readonly type: PromptType
  readonly new_type: PromptType | null
}

/** Returns the slots of a prompt and the unbound slots of its fragments. */
const listSlots = (
  { current_content, fragments }: PromptState,
  fragmentSlots: ReadonlyMap<string, ReadonlySet<string>>
): ReadonlyArray<string> => {
  const unbound = fragments.flatMap(({ fragment_id, variable_overrides }) =>
    listUnbound(fragmentSlots.get(fragment_id) ?? [], variable_overrides)
  )
  return [...new Set([...findSlots(current_content), ...unbound])]
}

/** Lists the prompts among the states that `getState` returns. A slug names its oldest prompt (docs/names.md). */
const listInterfaces = (
  pairs: ReadonlyArray<Pair>,
  getState: (pair: Pair) => ContentState | undefined
): ReadonlyArray<PromptInterface> => {
  const fragmentSlots = new Map<string, ReadonlySet<string>>()
  for (const pair of pairs) {
    const state = getState(pair)
    if (state?.kind === "fragment") fragmentSlots.set(pair.id, findSlots(state.content))
  }
  const prompts = pairs.flatMap((pair) => {
    const state = getState(pair)
    // A new prompt counts as the youngest prompt, because "new" sorts after every time.
    const age = `${pair.item?.createdAt ?? "new"} ${pair.id}`
    return state?.kind === "prompt"
      ? [{ id: pair.id, file: pair.file, age, slug: toSlug(state.title), state }]
      : []
  })
  const youngestFirst = Order.flip(Order.Struct({ age: Order.String }))
  const owners = new Map(prompts.toSorted(youngestFirst).map(({ slug, id }) => [slug, id]))
  return prompts.map(({ id, file, slug, state }) => ({
    id,
    name: toName({ id: id as PromptId, slug }, { owns_slug: owners.get(slug) === id, owns_digits: true }),
    type: state.prompt_type,
    slots: listSlots(state, fragmentSlots),
    path: file?.path ?? ""
  }))
}

/**
 * Compares the prompts of two states, and returns the breaking changes, ordered by name. A prompt is compared with the
 * later prompt that has the same id or, if there is none, the same name. A new prompt breaks no application.
 */
export const compareInterfaces = (
  before: ReadonlyArray<PromptInterface>,
  after: ReadonlyArray<PromptInterface>
): ReadonlyArray<BreakingChange> => {
  const byId = new Map(after.map((prompt) => [prompt.id, prompt]))
  const byName = new Map(after.map((prompt) => [prompt.name, prompt]))
  const changes = before.map(({ id, name, type, slots }): BreakingChange => {
    const current = byId.get(id) ?? byName.get(name)
    const newSlots = current?.slots ?? slots
    return {
      name,
      new_name: current?.name ?? null,
      removed_slots: slots.filter((slot) => !newSlots.includes(slot)),
      added_slots: newSlots.filter((slot) => !slots.includes(slot)),
      type,
      new_type: current?.type ?? null
    }
  })
  return changes
    .filter(
      ({ name, new_name, type, new_type, removed_slots, added_slots }) =>
        new_name !== name || new_type !== type || removed_slots.length + added_slots.length > 0
    )
    .sort(Order.Struct({ name: Order.String }))
}

/** Returns the breaking changes of an import of files. */
export const findBreakingChanges = (pairs: ReadonlyArray<Pair>): ReadonlyArray<BreakingChange> =>
  compareInterfaces(
    listInterfaces(pairs, ({ item }) => (item?.isArchived === false ? item.state : undefined)),
    listInterfaces(pairs, ({ file }) => file?.state)
  )

/** An arbitrary id, because ids of prompts are compared only with ids of the same workspace. */
const anyWorkspace = WorkspaceId.make("00000000-0000-0000-0000-000000000000")

const emptyContent = { folders: [], tags: [], fragments: [], prompts: [], importedStates: [] }

/** Checks a directory of files as an import into an empty workspace does. Returns the prompts and the warnings. */
export const checkFiles = (
  texts: Texts
): Result.Result<
  { readonly prompts: ReadonlyArray<PromptInterface>; readonly warnings: ReadonlyArray<Problem> },
  InvalidFiles
> =>
  Result.gen(function* () {
    const pairs = yield* pairForImport(anyWorkspace, emptyContent, yield* parseFiles(texts))
    return { prompts: listInterfaces(pairs, ({ file }) => file?.state), warnings: findSlotWarnings(pairs) }
  })
