import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import { makeDirectory, removeDirectories, run } from "../../support/programs/packages.ts"
import { toolsDirectory } from "../../support/programs/tools.ts"
import { startDemoApi } from "../../api/startApi.ts"

// biome-ignore lint/suspicious/noExplicitAny: the tests read arbitrary parts of reports and of generated modules
type Json = any

const api = startDemoApi()
const authorization = `Bearer ${api.key}`

const runTool = async (directory: string, name: string, args: ReadonlyArray<string>): Promise<void> => {
  const { code, stdout, stderr } = await run(directory, process.execPath, [
    join(toolsDirectory, "node_modules/.bin", name),
    ...args
  ])
  if (code !== 0) throw new Error(`${name}: ${stdout}${stderr}`)
}

describe("a client that is generated from /openapi.json", () => {
  const url = () => api.service().url
  const listPrompts = async () =>
    (await fetch(`${url()}/api/v1/prompts`, { headers: { authorization } })).json()
  afterAll(removeDirectories)

  it("hey-api generates a client whose first call succeeds", async () => {
    const directory = makeDirectory("hey-api")
    const options = [
      "--input",
      `${url()}/openapi.json`,
      "--output",
      directory,
      "--client",
      "@hey-api/client-fetch"
    ]
    await runTool(directory, "openapi-ts", [...options, "--no-log-file"])
    const { client }: Json = await import(join(directory, "client.gen.ts"))
    client.setConfig({ baseUrl: url() })
    const { promptsList }: Json = await import(join(directory, "sdk.gen.ts"))
    const { data, response } = await promptsList({ auth: api.key })
    expect([response.status, data]).toEqual([200, await listPrompts()])
  })
})
