/**
 * Handles the errors of a call.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-errors.ts
 */
import { NotFoundError, PromptApiError, PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient()

try {
  await client.prompts.get("suport-agent")
} catch (error) {
  if (error instanceof NotFoundError) console.log(error.message)
  else if (error instanceof PromptApiError) console.log(error.status, error.code, error.requestId)
  else throw error
}
