import { expect, it } from "vitest"
import { PromptsGroup } from "../../../src/adapters/inbound/contract/Api.ts"
import { document, type Json } from "./document.ts"

const allOperations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
  Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation }))
)
const operations = allOperations.filter(({ path }) => path.startsWith("/api/v1/"))

it("the OpenAPI document states that every endpoint requires a key, and that /healthz, /readyz, /openapi.json and /docs require no key", () => {
  expect(operations.map(({ operation }) => operation.operationId).toSorted()).toEqual(
    Object.keys(PromptsGroup.endpoints)
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
  const text = { type: "string" }
  const headers = { "If-None-Match": text, Prefer: text, "X-Request-Id": text }
  const schemas: Json = {
    id: text,
    version: { ...integer, maximum: 2147483647 },
    page: { ...integer, default: 1 },
    per_page: { ...integer, default: 20 },
    folder_id: { type: "string", format: "uuid" },
    tag: text,
    type: {
      type: "string",
      enum: ["system", "user", "assistant", "template", "few-shot", "chain-of-thought"]
    },
    prompt: { type: "array", items: text, maxItems: 100 },
    names: { type: "string", enum: ["true"] }
  }
  const endpoints: ReadonlyArray<Json> = Object.values(PromptsGroup.endpoints)
  for (const { path, operation } of operations) {
    const { query } = endpoints.find(({ identifier }) => `prompts.${identifier}` === operation.operationId)
    const names = [...path.matchAll(/(?<=\{)\w+/g), ...Object.keys(query?.fields ?? {})].map(String)
    expect(operation.parameters).toHaveLength(3 + names.length)
    expect(Object.fromEntries(operation.parameters.map(({ name, schema }: Json) => [name, schema]))).toEqual({
      ...headers,
      ...Object.fromEntries(names.map((name) => [name, schemas[name]]))
    })
  }
})

it("the OpenAPI schemas of responses allow fields and error codes that the document does not list", () => {
  expect(JSON.stringify(document)).not.toContain('"additionalProperties":false')
  expect(document.components.schemas.Error.properties.error.properties.code).toEqual({
    type: "string",
    description: expect.any(String),
    examples: expect.any(Array)
  })
})
