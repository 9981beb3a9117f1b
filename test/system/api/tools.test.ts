import { readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, describe, expect, it } from "vitest"
import type { Archive } from "../../../src/application/formats/Archive.ts"
import demo from "../../../src/demo/workspace.json" with { type: "json" }
import { key } from "../../support/archives.ts"
import { makeDirectory, removeDirectories, run } from "../../support/packages.ts"
import { toolsDirectory } from "../../support/tools.ts"
import { startApi } from "../../api/startApi.ts"

// biome-ignore lint/suspicious/noExplicitAny: the tests read arbitrary parts of reports and of generated modules
type Json = any

const demoArchive = demo as unknown as Archive
const demoKey = key(demoArchive.workspace.id, demoArchive.users[0]!)
const token = demoKey.plaintext
const authorization = `Bearer ${token}`
const api = startApi([{ ...demoArchive, api_keys: [demoKey.stored] }])

/** The names of the optional parameters and headers. */
const optionalNames = new Set([
  "page",
  "per_page",
  "folder_id",
  "tag",
  "type",
  "If-None-Match",
  "X-Request-Id"
])

/** Runs a tool in a directory. Rejects with its output if it fails. */
const runTool = async (directory: string, name: string, args: ReadonlyArray<string>): Promise<void> => {
  const { code, stdout, stderr } = await run(directory, process.execPath, [
    join(toolsDirectory, "node_modules/.bin", name),
    ...args
  ])
  if (code !== 0) throw new Error(`${name}: ${stdout}${stderr}`)
}

const readJson = (path: string): Json => JSON.parse(readFileSync(path, "utf8"))

const prompt = "/api/v1/prompts/cef02dd3-514f-5723-8852-d3305a2e66a8"
/** The targets of the endpoints with the example values of the document, in its order. */
const targets = [
  "/api/v1/prompts",
  prompt,
  `${prompt}/resolved`,
  `${prompt}/versions`,
  `${prompt}/versions/2`
]

describe("a tool that imports /openapi.json from its URL", () => {
  const url = () => api.service().url
  const documentUrl = () => `${url()}/openapi.json`
  const listPrompts = async () =>
    (await fetch(`${url()}/api/v1/prompts`, { headers: { authorization } })).json()
  afterAll(removeDirectories)

  it("hey-api generates a client whose base URL is the service, and whose first call succeeds", async () => {
    const directory = makeDirectory("hey-api")
    const options = ["--input", documentUrl(), "--output", directory, "--client", "@hey-api/client-fetch"]
    await runTool(directory, "openapi-ts", [...options, "--no-log-file"])
    const { client }: Json = await import(join(directory, "client.gen.ts"))
    expect(client.getConfig().baseUrl).toBe(url())
    const { promptsList }: Json = await import(join(directory, "sdk.gen.ts"))
    const { data, response } = await promptsList({ auth: token })
    expect([response.status, data]).toEqual([200, await listPrompts()])
  })

  it("orval generates a client whose base URL is the service, and whose first call succeeds", async () => {
    const directory = makeDirectory("orval")
    const output = { target: "./client.ts", client: "fetch", baseUrl: { getBaseUrlFromSpecification: true } }
    const config = { api: { input: documentUrl(), output } }
    writeFileSync(join(directory, "orval.config.mjs"), `export default ${JSON.stringify(config)}`)
    await runTool(directory, "orval", ["--config", "orval.config.mjs"])
    const { getPromptsListUrl, promptsList }: Json = await import(join(directory, "client.ts"))
    expect(getPromptsListUrl()).toBe(`${url()}/api/v1/prompts`)
    const { status, data } = await promptsList(undefined, { headers: { authorization } })
    expect([status, data]).toEqual([200, await listPrompts()])
  })

  it("Postman's converter makes a collection that newman runs, all of whose requests succeed", async () => {
    const directory = makeDirectory("postman")
    const document = await (await fetch(documentUrl())).text()
    writeFileSync(join(directory, "openapi.json"), document)
    const options = "enableOptionalParameters=false,parametersResolution=Example"
    const args = ["--spec", "openapi.json", "--output", "collection.json", "--options", options]
    await runTool(directory, "openapi2postmanv2", args)
    const { variable } = readJson(join(directory, "collection.json"))
    expect(variable).toMatchObject([{ key: "baseUrl", value: url() }])
    const report = ["--reporters", "json", "--reporter-json-export", "report.json"]
    const variables = ["--env-var", `bearerToken=${token}`]
    await runTool(directory, "newman", ["run", "collection.json", ...variables, ...report])
    const requests = readJson(join(directory, "report.json")).run.executions.map(
      ({ request: { url, header }, response }: Json) => ({
        path: `/${url.path.join("/")}`,
        optional: [...(url.query ?? []), ...header]
          .filter(({ key, disabled }) => disabled !== true && optionalNames.has(key))
          .map(({ key }) => key),
        status: response.code
      })
    )
    const operationalPaths = ["/healthz", "/readyz", "/openapi.json", "/docs"]
    expect(requests).toEqual(
      [...targets, ...operationalPaths].map((path) => ({ path, optional: [], status: 200 }))
    )
  })

  it("Bruno imports a collection whose base URL is the service, and all of whose API requests succeed", async () => {
    const directory = makeDirectory("bruno")
    const output = ["--output", directory, "--collection-name", "prompts"]
    await runTool(directory, "bru", ["import", "openapi", "--source", documentUrl(), ...output])
    const collection = join(directory, "prompts")
    const variables = ["--env", "Environment 1", "--env-var", `token=${token}`]
    await runTool(collection, "bru", ["run", "Prompts", ...variables, "--reporter-json", "report.json"])
    const [{ results }] = readJson(join(collection, "report.json"))
    expect(
      results.map(({ request, response }: Json) => [request.url.split("?")[0], response.status])
    ).toEqual(targets.map((target) => [url() + target, 200]))
  })
})
