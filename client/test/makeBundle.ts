import type { BundledPrompt, PromptBundle } from "../src/index.ts"
import { renderBundle, sealPrompt } from "../src/pull/BundleFile.ts"

/** Makes a bundle with valid hashes. Fields that a prompt omits get fixed values. */
export const makeBundle = (
  prompts: ReadonlyArray<Pick<BundledPrompt, "id" | "content"> & Partial<BundledPrompt>>
): PromptBundle =>
  JSON.parse(
    renderBundle(
      prompts.map(({ sha256: _, ...prompt }) =>
        sealPrompt({
          name: "bundled",
          title: "Bundled",
          prompt_type: "system",
          target_model: "gpt-4o",
          fragment_count: 0,
          version: 7,
          slots: ["shop"],
          ...prompt
        })
      )
    )
  )
