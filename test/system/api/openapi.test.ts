import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { makeOpenApi } from "../../../src/adapters/inbound/http/docs/OpenApi.ts"
import { startDemoApi } from "../../api/startApi.ts"
import { run } from "../../support/programs/packages.ts"
import { findTool } from "../../support/programs/tools.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const directory = makeTestDirectory("openapi-")
const { service, key } = startDemoApi()

it("Redocly's linter finds no problem in the OpenAPI document and ignores none", async () => {
  const path = join(directory, "openapi.json")
  writeFileSync(path, JSON.stringify(makeOpenApi("/")))
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
  const { url } = service()
  const output = join(directory, "client")
  const { code, stdout, stderr } = await run(directory, process.execPath, [
    findTool("@hey-api/openapi-ts/bin/run.js"),
    ...["--input", `${url}/openapi.json`],
    ...["--output", output],
    ...["--client", "@hey-api/client-fetch"],
    "--no-log-file"
  ])
  expect(code, stdout + stderr).toBe(0)
  const { client } = await import(join(output, "client.gen.ts"))
  client.setConfig({ baseUrl: url })
  const { promptsList } = await import(join(output, "sdk.gen.ts"))
  const { data, response } = await promptsList({ auth: key })
  const listed = await fetch(`${url}/api/v1/prompts`, { headers: { authorization: `Bearer ${key}` } })
  expect([response.status, data]).toEqual([200, await listed.json()])
})
