/**
 * Handles the errors of a call.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-errors.ts
 */
import { NotFoundError, PromptApiError, PromptClient, PromptClientError } from "@prompt-retrieval/client"

const client = new PromptClient()

const read = async (id: string): Promise<void> => {
  try {
    const { data } = await client.prompts.get(id)
    console.log(data.title)
  } catch (error) {
    if (error instanceof NotFoundError) console.log(`no prompt ${id}`)
    else if (error instanceof PromptApiError) console.log(error.status, error.code, error.requestId)
    else if (error instanceof PromptClientError) console.log(error.name, error.message)
    else throw error
  }
}

await read("cef02dd3-514f-5723-8852-d3305a2e66a8")
await read("00000000-0000-4000-8000-000000000000")
