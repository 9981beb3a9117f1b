import { type BundledPrompt, type PromptBundle, verifyBundle } from "./Bundle.ts"
import type { PromptReference } from "./PromptReference.ts"
import type { ResolvedPrompt, Single, Source } from "./Resources.ts"
import { toBundledResult } from "./Results.ts"

/** The prompts of a bundle. The bundle is verified when the first prompt is needed. */
export class BundledPrompts {
  readonly #bundle: PromptBundle
  #prompts: Promise<ReadonlyMap<string | undefined, BundledPrompt>> | undefined

  constructor(bundle: PromptBundle) {
    this.#bundle = bundle
  }

  /** Finds a prompt by its id or its name. Rejects with a `BundleError` if a hash of the bundle does not match. */
  async find(prompt: string | PromptReference): Promise<Single<ResolvedPrompt, Source> | undefined> {
    this.#prompts ??= verifyBundle(this.#bundle).then(
      ({ prompts }) =>
        new Map(prompts.flatMap((prompt) => [prompt.id, prompt.name].map((key) => [key, prompt] as const)))
    )
    const prompts = await this.#prompts
    const { id, name } = typeof prompt === "string" ? { id: prompt, name: prompt } : prompt
    const bundled = prompts.get(id?.toLowerCase()) ?? prompts.get(name)
    return bundled && toBundledResult(bundled)
  }
}
