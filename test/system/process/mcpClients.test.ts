import { join } from "node:path"
import { pathToFileURL } from "node:url"
import { expect, it } from "vitest"
import { instant, makeTenant, prompt } from "../../support/archives.ts"
import type { Json } from "../../support/clients/mcp.ts"
import { toolsDirectory } from "../../support/programs/tools.ts"
import { startApi } from "../../api/startApi.ts"

const { key, archive } = makeTenant({
  prompts: [
    prompt({ title: "Greeting", current_content: "Greet {{name}}." }),
    prompt({ title: "Other", updated_at: instant("2026-01-01T12:00:00.000Z") })
  ]
})
const { plaintext } = key
const api = startApi([archive], { env: { MCP: "on" } })

const importTool = (path: string): Promise<Json> =>
  import(pathToFileURL(join(toolsDirectory, "node_modules/@modelcontextprotocol", path)).href)

const sdk1 = async () => {
  const [{ Client }, http] = await Promise.all([
    importTool("sdk/dist/esm/client/index.js"),
    importTool("sdk/dist/esm/client/streamableHttp.js")
  ])
  return { Client, Http: http.StreamableHTTPClientTransport }
}
const sdk2 = async () => {
  const { Client, StreamableHTTPClientTransport } = await importTool("client/dist/index.mjs")
  return { Client, Http: StreamableHTTPClientTransport }
}

/** The clients of the official SDK, and the protocol version that each client uses. */
const clients = [
  ["1.x", "2025-11-25", sdk1, {}],
  ["2.x", "2025-11-25", sdk2, {}],
  ["2.x", "2026-07-28", sdk2, { versionNegotiation: { mode: "auto" } }]
] as const

/** Lists prompts, gets a prompt and calls tools, as an editor does. */
const useClient = async (client: Json): Promise<void> => {
  const listed = await client.listPrompts()
  expect(listed.prompts.map(({ name }: Json) => name)).toEqual(["greeting", "other"])
  const greeting = { name: "greeting", arguments: { name: "Ada" } }
  const got = await client.getPrompt(greeting)
  expect(got.messages).toEqual([{ role: "user", content: { type: "text", text: "Greet Ada." } }])
  const { tools } = await client.listTools()
  expect(tools.map(({ name, annotations }: Json) => [name, annotations.readOnlyHint])).toEqual([
    ["list_prompts", true],
    ["get_prompt", true]
  ])
  const called = await client.callTool({ name: "get_prompt", arguments: greeting })
  expect(called.content).toEqual([{ type: "text", text: "Greet Ada." }])
  const page = await client.callTool({ name: "list_prompts", arguments: {} })
  expect(JSON.parse(page.content[0].text)).toEqual({ prompts: listed.prompts })
}

it.each(clients)(
  "an MCP client %s of protocol version %s lists prompts, gets a prompt and calls tools",
  async (_, revision, load, options) => {
    const { Client, Http } = await load()
    const client = new Client({ name: "test", version: "1" }, options)
    const headers = { authorization: `Bearer ${plaintext}` }
    const transport = new Http(new URL(`${api.service().url}/mcp`), { requestInit: { headers } })
    await client.connect(transport)
    try {
      await useClient(client)
      expect(client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion).toBe(revision)
    } finally {
      await client.close()
    }
  }
)
