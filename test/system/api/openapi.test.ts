import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { openApi } from "../../../src/adapters/inbound/http/docs/OpenApi.ts"
import { makeDirectory, removeDirectories, run } from "../../support/programs/packages.ts"
import { findTool } from "../../support/programs/tools.ts"
import { startDemoApi } from "../../api/startApi.ts"

// biome-ignore lint/suspicious/noExplicitAny: the tests read arbitrary parts of reports and of generated modules
type Json = any

const api = startDemoApi()
afterAll(removeDirectories)

it("Redocly's linter finds no problem in the OpenAPI document, and no problem is ignored", async () => {
  const directory = makeDirectory("openapi")
  const path = join(directory, "openapi.json")
  writeFileSync(path, JSON.stringify(openApi))
  const rules = join(import.meta.dirname, "../../../redocly.yaml")
  const { code, stdout } = await run(
    directory,
    process.execPath,
    [findTool("@redocly/cli/bin/cli.js"), "lint", path, "--config", rules, "--format", "json"],
    { REDOCLY_TELEMETRY: "off", REDOCLY_SUPPRESS_UPDATE_NOTICE: "true" }
  )
  const { totals, problems } = JSON.parse(stdout)
  expect({ code, totals, problems }).toEqual({
    code: 0,
    totals: { errors: 0, warnings: 0, ignored: 0 },
    problems: []
  })
})

it("hey-api generates a client from /openapi.json whose first call succeeds", async () => {
  const { url } = api.service()
  const directory = makeDirectory("hey-api")
  const { code, stdout, stderr } = await run(directory, process.execPath, [
    findTool(".bin/openapi-ts"),
    ...["--input", `${url}/openapi.json`],
    ...["--output", directory],
    ...["--client", "@hey-api/client-fetch"],
    "--no-log-file"
  ])
  expect(code, stdout + stderr).toBe(0)
  const { client }: Json = await import(join(directory, "client.gen.ts"))
  client.setConfig({ baseUrl: url })
  const { promptsList }: Json = await import(join(directory, "sdk.gen.ts"))
  const { data, response } = await promptsList({ auth: api.key })
  const listed = await fetch(`${url}/api/v1/prompts`, { headers: { authorization: `Bearer ${api.key}` } })
  expect([response.status, data]).toEqual([200, await listed.json()])
})
