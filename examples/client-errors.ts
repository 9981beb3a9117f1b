/**
 * Handles the errors of a call.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-errors.ts
 */
import { NotFoundError, PromptApiError, PromptClient, PromptClientError } from "@prompt-retrieval/client"

const client = new PromptClient()

const read = async (name: string): Promise<void> => {
  try {
    const { data } = await client.prompts.get(name)
    console.log(data.title)
  } catch (error) {
    if (error instanceof NotFoundError) console.log(error.message)
    else if (error instanceof PromptApiError) console.log(error.status, error.code, error.requestId)
    else if (error instanceof PromptClientError) console.log(error.name, error.message)
    else throw error
  }
}

await read("support-agent")
await read("suport-agent")
