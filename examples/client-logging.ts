/**
 * Writes a JSON line for each attempt of a call.
 *
 *     API_KEY=key_live_… npx node examples/client-logging.ts
 */
import { type LogFields, PromptClient } from "@prompt-retrieval/client"

const write = (level: string) => (message: string, fields: LogFields) =>
  console.log(JSON.stringify({ level, message, ...fields }))

const client = new PromptClient({
  apiKey: process.env.API_KEY ?? "",
  baseUrl: process.env.BASE_URL,
  logger: { debug: write("debug"), warn: write("warn") }
})

await client.prompts.list({ tag: "production" })
