import type { JsonObject } from "../../../domain/Json.ts"
import type { RpcError } from "./JsonRpc.ts"

interface Tool {
  readonly definition: JsonObject & { readonly name: string }
  readonly read: "list" | "get"
}

const makeReadOnlyHints = (title: string): JsonObject => ({
  title,
  readOnlyHint: true,
  destructiveHint: false,
  idempotentHint: true,
  openWorldHint: false
})

const makeObjectSchema = (properties: JsonObject, required: ReadonlyArray<string>): JsonObject => ({
  type: "object",
  properties,
  required,
  additionalProperties: false
})

const makeTextSchema = (description: string): JsonObject => ({ type: "string", description })

const listedArgument = makeObjectSchema(
  { name: makeTextSchema("Name of the argument"), required: { type: "boolean" } },
  ["name", "required"]
)

const listedPrompt = makeObjectSchema(
  {
    name: makeTextSchema("Name of the prompt, for get_prompt"),
    title: makeTextSchema("Title of the prompt"),
    description: makeTextSchema("What the prompt does"),
    arguments: { type: "array", items: listedArgument }
  },
  ["name", "title", "arguments"]
)

/** The tools, for clients that do not support prompts. */
export const tools: ReadonlyArray<Tool> = [
  {
    read: "list",
    definition: {
      name: "list_prompts",
      title: "List prompts",
      description: "Lists the prompts of the workspace, most recently updated first, one page at a time.",
      inputSchema: makeObjectSchema(
        { cursor: makeTextSchema("nextCursor of the previous page; absent for the first page") },
        []
      ),
      outputSchema: makeObjectSchema(
        {
          prompts: { type: "array", items: listedPrompt },
          nextCursor: makeTextSchema("Cursor of the next page; absent on the last page")
        },
        ["prompts"]
      ),
      annotations: makeReadOnlyHints("List prompts")
    }
  },
  {
    read: "get",
    definition: {
      name: "get_prompt",
      title: "Get a prompt",
      description: "Returns the text of a prompt with its arguments filled in. All arguments are required.",
      inputSchema: makeObjectSchema(
        {
          name: makeTextSchema("Name of the prompt, from list_prompts"),
          arguments: {
            type: "object",
            additionalProperties: { type: "string" },
            description: "Value of each argument by its name"
          }
        },
        ["name"]
      ),
      outputSchema: makeObjectSchema(
        {
          role: { type: "string", enum: ["user", "assistant"], description: "Role of the message" },
          text: makeTextSchema("Text of the prompt")
        },
        ["role", "text"]
      ),
      annotations: makeReadOnlyHints("Get a prompt")
    }
  }
]

export const toToolError = ({ message }: RpcError): JsonObject => ({
  content: [{ type: "text", text: message }],
  isError: true
})
