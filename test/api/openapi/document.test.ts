import { expect, it } from "vitest"
import { endpointTargets } from "../startApi.ts"
import { document, type Json } from "./document.ts"

const allOperations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
  Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation }))
)
const operations = allOperations.filter(({ path }) => path.startsWith("/api/v1/"))

it("the OpenAPI document states that every endpoint requires a key, and that every operational path except redirects requires no key", () => {
  expect(operations.map(({ operation }) => operation.operationId).toSorted()).toEqual(
    Object.keys(endpointTargets("id"))
      .map((name) => `prompts.${name}`)
      .toSorted()
  )
  const others = allOperations.slice(operations.length)
  expect(others.map(({ path }) => path)).toEqual(["/healthz", "/readyz", "/openapi.json", "/docs"])
  for (const { operation } of others) expect(operation).toMatchObject({ tags: ["Service"], security: [] })
  for (const { operation } of operations)
    expect(operation).toMatchObject({ tags: ["Prompts"], security: [{ bearer: [] }] })
  expect(allOperations.map(({ method }) => method)).toEqual(allOperations.map(() => "get"))
})

it("the OpenAPI document states the type and the bounds of every parameter", () => {
  const integer = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
  const types = ["system", "user", "assistant", "template", "few-shot", "chain-of-thought"]
  const header = {
    "If-None-Match": { type: "string" },
    Prefer: { type: "string" },
    "X-Request-Id": { type: "string" }
  }
  const paging = { page: { ...integer, default: 1 }, per_page: { ...integer, default: 20 } }
  const filters = {
    ...paging,
    folder_id: { type: "string", format: "uuid" },
    tag: { type: "string" },
    type: { type: "string", enum: types }
  }
  const prompt = { type: "array", items: { type: "string" }, maxItems: 100 }
  const id = { id: { type: "string" } }
  const found = operations.map(({ operation }) => [
    operation.operationId,
    Object.assign({}, ...operation.parameters.map(({ name, schema }: Json) => ({ [name]: schema })))
  ])
  expect(Object.fromEntries(found)).toEqual({
    "prompts.list": { ...header, ...filters },
    "prompts.listResolved": { ...header, ...filters, names: { type: "string", enum: ["true"] }, prompt },
    "prompts.get": { ...header, ...id },
    "prompts.getResolved": { ...header, ...id },
    "prompts.listVersions": { ...header, ...id, ...paging },
    "prompts.getVersion": { ...header, ...id, version: { ...integer, maximum: 2147483647 } }
  })
})

it("the OpenAPI schemas of responses allow fields and error codes that the document does not list", () => {
  expect(JSON.stringify(document)).not.toContain('"additionalProperties":false')
  expect(document.components.schemas.Error.properties.error.properties.code).toEqual({
    type: "string",
    description: expect.any(String),
    examples: expect.any(Array)
  })
})
