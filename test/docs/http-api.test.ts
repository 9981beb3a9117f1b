import { expect, it } from "vitest"
import { operationalPaths } from "../../src/adapters/inbound/contract/Api.ts"
import { errors } from "../../src/adapters/inbound/contract/Errors.ts"
import { makeOpenApi } from "../../src/adapters/inbound/http/docs/OpenApi.ts"
import { defaultRateLimits } from "../../src/application/Admission.ts"
import { positiveIntRule } from "../../src/domain/Page.ts"
import { readDocument, readTable } from "./markdown.ts"

const path = "docs/http-api.md"
const openApi = makeOpenApi("/")
const endpointPaths = Object.keys(openApi.paths).filter((path) => path.startsWith("/api/v1/"))

it("docs/http-api.md has a section for each error code, with the status, message, cause and remedy of each error", () => {
  for (const [code, specs] of Map.groupBy(Object.values(errors), ({ code }) => code)) {
    const [section = ""] = new RegExp(`^### ${code}\\n.*?(?=\\n#)`, "ms").exec(readDocument(path)) ?? []
    const listed = [...section.matchAll(/^- (\d+) `([^`]+)`: .+?\. [A-Z]/gms)]
    expect(listed.map(([, status, message]) => [Number(status), message])).toEqual(
      specs.map(({ status, message }) => [
        status,
        typeof message === "string" ? message : `page ${positiveIntRule}`
      ])
    )
  }
})

it("the table of rate limits in docs/http-api.md has the default limits of the service", () => {
  expect(readTable(path, "Rate limits").slice(0, 2)).toEqual([
    ["`key`", String(defaultRateLimits.perKey), expect.any(String)],
    ["`process`", String(defaultRateLimits.perProcess), expect.any(String)]
  ])
})

/** Returns the texts in code format that the cells of a table contain. */
const findCodes = (cells: ReadonlyArray<string>): ReadonlyArray<string> =>
  cells.flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(({ 1: code }) => code!))

it("the tables in docs/http-api.md list all paths of the service and all query parameters of the list of prompts", () => {
  expect(findCodes(readTable(path, "Endpoints").map(([path]) => path!))).toEqual(endpointPaths)
  expect(findCodes(readTable(path, "Other paths").flat()).toSorted()).toEqual(operationalPaths.toSorted())
  const parameters = openApi.paths["/api/v1/prompts"]!.get!.parameters
  expect(findCodes(readTable(path, "List prompts").map(([name]) => name!))).toEqual(
    parameters.flatMap((parameter) => (parameter.in === "query" ? [parameter.name] : []))
  )
})

it.each([
  ["a prompt", "Prompt", "PromptSummary"],
  ["resolved content", "ResolvedPrompt", "ResolvedPrompt"],
  ["a version", "Version", "VersionSummary"]
])("docs/http-api.md lists %s with the fields of %s, and marks those of %s", (name, resource, summary) => {
  const listFields = (schema: string) =>
    Object.keys((openApi.components.schemas[schema] as { readonly properties: object }).properties)
  const rows = readTable(path, `Fields of ${name}`)
  expect(findCodes(rows.map(([name]) => name!))).toEqual(listFields(resource))
  const marked = rows.filter(([, , inLists]) => inLists !== "no")
  expect(findCodes(marked.map(([name]) => name!))).toEqual(listFields(summary))
})
