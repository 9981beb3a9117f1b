import type { Tool } from "@modelcontextprotocol/server"

const annotations = { readOnlyHint: true, openWorldHint: false }
const text = { type: "string" }

/** The tools for clients that do not support prompts. */
export const tools: ReadonlyArray<Tool> = [
  {
    name: "list_prompts",
    description:
      "Lists the prompts of the workspace as JSON, most recently updated first. nextCursor is the cursor of the next page.",
    inputSchema: { type: "object", properties: { cursor: text } },
    annotations
  },
  {
    name: "get_prompt",
    description:
      "Returns the text of a prompt with its arguments filled in. list_prompts has the names. All arguments are required.",
    inputSchema: {
      type: "object",
      properties: { name: text, arguments: { type: "object", additionalProperties: text } },
      required: ["name"]
    },
    annotations
  }
]
