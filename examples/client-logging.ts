/**
 * Writes a JSON line for each attempt of a call.
 *
 *     PROMPT_RETRIEVAL_KEY=key_live_… npx node examples/client-logging.ts
 */
import { type LogFields, PromptClient } from "@prompt-retrieval/client"

const write = (level: string) => (message: string, fields: LogFields) =>
  console.log(JSON.stringify({ level, message, ...fields }))

const client = new PromptClient({
  logger: { debug: write("debug"), warn: write("warn") }
})

await client.prompts.list({ tag: "production" })
