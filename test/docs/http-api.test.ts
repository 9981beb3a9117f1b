import { expect, it } from "vitest"
import { operationalPaths } from "../../src/adapters/inbound/contract/Api.ts"
import { errors } from "../../src/adapters/inbound/contract/Errors.ts"
import { makeOpenApi } from "../../src/adapters/inbound/http/docs/OpenApi.ts"
import { encodeWithEtag } from "../../src/adapters/inbound/http/HttpMessage.ts"
import { defaultRateLimits } from "../../src/application/Admission.ts"
import { positiveIntRule } from "../../src/domain/Page.ts"
import { readCodeBlocks, readDocument, readTable } from "./markdown.ts"

const path = "docs/http-api.md"
const { paths, components } = makeOpenApi("/")
const endpointPaths = Object.keys(paths).filter((path) => path.startsWith("/api/v1/"))

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
  const { parameters } = paths["/api/v1/prompts"]!.get!
  const queryNames = parameters.flatMap((parameter) => (parameter.in === "query" ? [parameter.name] : []))
  expect(findCodes(readTable(path, "List prompts").map(([name]) => name!))).toEqual(queryNames)
})

it("docs/http-api.md shows the ETag and the length of the body of its first response", () => {
  const { code } = readCodeBlocks(path).find(({ language }) => language === "json")!
  const { body, etag } = encodeWithEtag(JSON.stringify(JSON.parse(code)))
  const shown = readDocument(path).match(/^content-length: \d+(?=\ncache-control: public)|"[\w-]{43}"/gm)
  expect(shown).toEqual([`content-length: ${body.length}`, etag, etag])
})

it("docs/http-api.md has a table of the fields of each resource, and marks the fields of list items", () => {
  const tables = {
    "Fields of a prompt": ["Prompt", "PromptSummary"],
    "Fields of resolved content": ["ResolvedPrompt", "ResolvedPrompt"],
    "Fields of a version": ["Version", "VersionSummary"]
  } as const
  const listFields = (name: string) =>
    Object.keys((components.schemas[name] as { properties: object }).properties)
  for (const [heading, schemas] of Object.entries(tables)) {
    const rows = readTable(path, heading)
    const marked = rows.filter(([, , inLists]) => inLists !== "no")
    const fields = [rows, marked].map((rows) => findCodes(rows.map(([name]) => name!)))
    expect(fields).toEqual(schemas.map(listFields))
  }
  const names = new Set(["Error", "PageMeta", "Tag", ...Object.values(tables).flat()])
  expect(new Set(Object.keys(components.schemas))).toEqual(names)
})
