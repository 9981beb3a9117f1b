/**
 * Prints the text of a prompt, and for an hour prints the new text after each change. Edit the prompt during this hour.
 * In a checkout, run `npm run build --workspace client` first.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-live.ts
 */
import { setTimeout } from "node:timers/promises"
import { PromptClient } from "@prompt-retrieval/client"

const client = new PromptClient()

const print = async (name: string): Promise<void> => {
  const { data, source, version } = await client.prompts.getResolved(name)
  console.log(`${name}, version ${version}, ${source}: ${data.resolved_content.split("\n")[0]}`)
}

const live = await client.live({ tag: "production" }, { onChange: print })
await print("support-agent")
await setTimeout(3_600_000) // live prompts alone do not keep a program running
live.close()
