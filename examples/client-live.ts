/**
 * Prints the text of a prompt, and its new text whenever it changes, until Ctrl+C. Edit the prompt meanwhile. In a
 * checkout, run `npm run build --workspace client` first.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-live.ts
 */
import { once } from "node:events"
import { PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient()

const print = async (name: string): Promise<void> => {
  const { data, source, version } = await client.prompts.getResolved(name)
  console.log(`${name}, version ${version}, ${source}: ${data.resolved_content.split("\n")[0]}`)
}

const live = await client.live({ tag: "production" }, { onChange: print })
await print("support-agent")
await once(process, "SIGINT")
live.close()
