import { findSlots, toSlotText } from "../../domain/Resolution.ts"
import type { Problem } from "../../domain/WorkspaceContent.ts"
import type { ContentFile } from "./PromptFile.ts"

/**
 * Returns a warning for each binding that names no slot of its fragment, and for each slot of a fragment that a prompt
 * does not bind. Neither makes a file invalid. A binding that names no slot has no effect. A slot without a binding
 * stays in the resolved content, and the application that uses the prompt fills it.
 */
export const findSlotWarnings = (files: ReadonlyArray<ContentFile>): ReadonlyArray<Problem> => {
  const byId = new Map(
    files.flatMap(({ id, path, state }) =>
      state.kind === "fragment" ? [[id, { path, slots: findSlots(state.content) }] as const] : []
    )
  )
  return files.flatMap(({ path, state }) =>
    (state.kind === "prompt" ? state.fragments : []).flatMap(({ fragment_id, variable_overrides }) => {
      const fragment = byId.get(fragment_id)
      if (fragment === undefined) return []
      const bound = new Set(
        Object.entries(variable_overrides).flatMap(([name, value]) =>
          toSlotText(value) === undefined ? [] : name
        )
      )
      const unknown = Object.keys(variable_overrides).filter((name) => !fragment.slots.has(name))
      const unbound = [...fragment.slots].filter((slot) => !bound.has(slot))
      return [
        ...unknown.map((name) => ({ path, message: `binds ${name}, which is no slot of ${fragment.path}` })),
        ...unbound.map((name) => ({
          path,
          message: `does not bind the slot {{${name}}} of ${fragment.path}`
        }))
      ]
    })
  )
}
