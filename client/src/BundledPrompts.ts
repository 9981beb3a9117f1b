import { type BundledPrompt, type PromptBundle, verifyBundle } from "./Bundle.ts"
import type { PromptReference } from "./PromptReference.ts"
import type { ResolvedPrompt, Single, Source } from "./Resources.ts"
import { toSubstitute } from "./Results.ts"

/** Finds a prompt by its id or its name. Rejects with a `BundleError` if a hash of the bundle does not match. */
export type FindBundled = (
  prompt: string | PromptReference
) => Promise<Single<ResolvedPrompt, Source> | undefined>

/** Makes a function that finds the prompts of a bundle. Verifies the bundle when the first prompt is needed. */
export const makeFindBundled = (bundle: PromptBundle): FindBundled => {
  let verified: Promise<ReadonlyMap<string | undefined, BundledPrompt>> | undefined
  return async (prompt) => {
    verified ??= verifyBundle(bundle).then(
      ({ prompts }) =>
        new Map(prompts.flatMap((prompt) => [prompt.id, prompt.name].map((key) => [key, prompt])))
    )
    const prompts = await verified
    const { id, name } = typeof prompt === "string" ? { id: prompt, name: prompt } : prompt
    const bundled = prompts.get(id?.toLowerCase()) ?? prompts.get(name)
    return bundled && toSubstitute("bundled", bundled)
  }
}
