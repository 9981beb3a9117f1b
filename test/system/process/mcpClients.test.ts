import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, it, onTestFinished } from "vitest"
import { startApi } from "../../api/startApi.ts"
import { instant, makeTenant, prompt } from "../../support/archives.ts"
import type { Json } from "../../support/clients/mcp.ts"
import { toolsDirectory } from "../../support/programs/tools.ts"

const { key, archive } = makeTenant({
  prompts: [
    prompt({ title: "Greeting", current_content: "Greet {{name}}." }),
    prompt({ title: "Other", updated_at: instant("2026-01-01T12:00:00.000Z") })
  ]
})
const api = startApi([archive], { env: { MCP: "on" } })

const importTool = (path: string): Promise<Json> =>
  import(pathToFileURL(join(toolsDirectory, "node_modules/@modelcontextprotocol", path)).href)

const sdk1 = ["sdk/dist/esm/client/index.js", "sdk/dist/esm/client/streamableHttp.js"]
const sdk2 = ["client/dist/index.mjs"]

// Each row has the SDK's version, the protocol version that this client negotiates, its modules, and its options.
it.each([
  ["1.x", "2025-11-25", sdk1, {}],
  ["2.x", "2025-11-25", sdk2, {}],
  ["2.x", "2026-07-28", sdk2, { versionNegotiation: { mode: "auto" } }]
])(
  "the official MCP client %s with protocol version %s lists prompts, gets a prompt and calls tools",
  async (_, version, paths, options) => {
    const modules = await Promise.all(paths.map(importTool))
    const { Client, StreamableHTTPClientTransport } = Object.assign({}, ...modules)
    const client = new Client({ name: "test", version: "1" }, options)
    const headers = { authorization: `Bearer ${key.plaintext}` }
    const url = new URL(`${api.service().url}/mcp`)
    const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } })
    await client.connect(transport)
    onTestFinished(() => client.close())
    const greeting = { name: "greeting", arguments: { name: "Ada" } }
    const content = { type: "text", text: "Greet Ada." }
    const { prompts } = await client.listPrompts()
    expect({
      version: client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion,
      prompts: prompts.map(({ name }: Json) => name),
      messages: (await client.getPrompt(greeting)).messages,
      tools: (await client.listTools()).tools.map(({ name, annotations }: Json) => [
        name,
        annotations.readOnlyHint
      ]),
      called: (await client.callTool({ name: "get_prompt", arguments: greeting })).content,
      listed: JSON.parse((await client.callTool({ name: "list_prompts", arguments: {} })).content[0].text)
    }).toEqual({
      version,
      prompts: ["greeting", "other"],
      messages: [{ role: "user", content }],
      tools: [
        ["list_prompts", true],
        ["get_prompt", true]
      ],
      called: [content],
      listed: { prompts }
    })
  }
)
