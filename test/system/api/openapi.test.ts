import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { makeOpenApi } from "../../../src/adapters/inbound/http/docs/OpenApi.ts"
import { run } from "../../support/programs/packages.ts"
import { findTool } from "../../support/programs/tools.ts"
import { makeTestDirectory } from "../../support/testDirectory.ts"

const directory = makeTestDirectory("openapi-")

it("Redocly's linter finds no problem in the OpenAPI document, and no problem is ignored", async () => {
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
