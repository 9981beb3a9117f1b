/**
 * Resolves a prompt with the pure core. In a checkout, run `npm run build` first.
 *
 *     npx node examples/resolve.ts
 */
import * as Result from "effect/Result"
import type { PromptId } from "prompt-retrieval/domain/Prompt"
import { resolve } from "prompt-retrieval/domain/Resolution"

const result = resolve({
  id: "5b1d8f0c-1f57-4f6e-8f39-0a8f6f0c2b22" as PromptId,
  title: "Greeting",
  prompt_type: "system",
  target_model: "gpt-4o",
  current_content: "Greet {{customer}}.",
  fragments: [{ content: "Be {{tone}}.", variable_overrides: { tone: "brief" } }]
})

if (Result.isSuccess(result)) console.log(result.success.resolved_content)
else console.log("The resolved content is larger than 1 MiB.")
