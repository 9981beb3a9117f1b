import type { BundledPrompt, PromptBundle } from "../src/index.ts"
import { renderBundle, renderPrompt, sealPrompt } from "../src/pull/BundleFile.ts"

/** Renders `prompts.bundle.json` with prompts that have their hashes. */
export const toBytes = (prompts: ReadonlyArray<BundledPrompt>): Buffer =>
  Buffer.concat(Array.from(renderBundle(prompts.map(renderPrompt)), (piece) => Buffer.from(piece)))

/** Makes a bundle with valid hashes. Fields that are left out have fixed values. */
export const makeBundle = (
  prompts: ReadonlyArray<Pick<BundledPrompt, "id" | "content"> & Partial<BundledPrompt>>
): PromptBundle =>
  JSON.parse(
    toBytes(
      prompts.map(({ sha256: _, ...prompt }) =>
        sealPrompt({
          title: "Bundled",
          prompt_type: "system",
          target_model: "gpt-4o",
          fragment_count: 0,
          version: 7,
          etag: '"bundled"',
          slots: ["shop"],
          ...prompt
        })
      )
    ).toString()
  )
