import { type BundledPrompt, type PromptBundle, verifyBundle } from "./Bundle.ts"
import type { ResolvedPrompt, Single, Source } from "./Resources.ts"
import { toSubstitute } from "./Results.ts"

/** Finds a prompt by its name or its id. Rejects with a `BundleError` if a hash of the bundle does not match. */
export type FindBundled = (name: string) => Promise<Single<ResolvedPrompt, Source> | undefined>

/** Makes a function that finds the prompts of a bundle. Verifies the bundle when the first prompt is needed. */
export const makeFindBundled = (bundle: PromptBundle): FindBundled => {
  let verified: Promise<ReadonlyMap<string, BundledPrompt>> | undefined
  return async (name) => {
    verified ??= verifyBundle(bundle).then(
      ({ prompts }) =>
        new Map(prompts.flatMap((prompt) => [prompt.id, prompt.name].map((key) => [key, prompt])))
    )
    // Ids are accepted in upper case.
    const bundled = (await verified).get(name.toLowerCase())
    return bundled && toSubstitute("bundled", bundled)
  }
}
