import { type BundledPrompt, type PromptBundle, verifyBundle } from "./Bundle.ts"

/** The prompts of a bundle, which is verified when the first prompt is needed. */
export class BundledPrompts {
  readonly #bundle: PromptBundle
  #prompts: Promise<ReadonlyMap<string, BundledPrompt>> | undefined

  constructor(bundle: PromptBundle) {
    this.#bundle = bundle
  }

  /** Finds a prompt. Rejects with a `BundleError` if a hash of the bundle does not match. */
  async find(id: string): Promise<BundledPrompt | undefined> {
    this.#prompts ??= verifyBundle(this.#bundle).then(
      ({ prompts }) => new Map(prompts.map((prompt) => [prompt.id, prompt]))
    )
    return (await this.#prompts).get(id.toLowerCase())
  }
}
