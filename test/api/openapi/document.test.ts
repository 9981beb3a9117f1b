import { expect, it } from "vitest"
import packageJson from "../../../package.json" with { type: "json" }
import { type ErrorSpec, errors } from "../../../src/adapters/inbound/contract/Errors.ts"
import { endpointTargets } from "../startApi.ts"
import { deref, document, type Json } from "./document.ts"

const allOperations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
  Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation }))
)
const operations = allOperations.filter(({ path }) => path.startsWith("/api/v1/"))
const findOperation = (id: string) =>
  operations.find(({ operation }) => operation.operationId === id)!.operation

it("the OpenAPI document describes every endpoint, and the operational paths except redirects, which need no key", () => {
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

it("the OpenAPI document has a title, the version of the package and bearer authentication", () => {
  expect(document.openapi).toMatch(/^3\.1\./)
  expect(document.info).toMatchObject({ title: "Prompt Retrieval", version: packageJson.version })
  expect(document.servers).toEqual([{ url: "/" }])
  expect(document.components.securitySchemes.bearer).toMatchObject({ type: "http", scheme: "bearer" })
})

const integer = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
const types = ["system", "user", "assistant", "template", "few-shot", "chain-of-thought"]
/** The schemas of the parameters (specification 4), by name. */
const parameterSchemas: Readonly<Record<string, object>> = {
  page: { ...integer, default: 1 },
  per_page: { ...integer, default: 20 },
  folder_id: { type: "string", format: "uuid" },
  tag: { type: "string" },
  type: { type: "string", enum: types },
  names: { type: "string", enum: ["true"] },
  prompt: { type: "array", items: { type: "string" }, maxItems: 100 },
  id: { type: "string" },
  version: { ...integer, maximum: 2147483647 }
}
const paging = ["page", "per_page"]
const filters = [...paging, "folder_id", "tag", "type"]

it.each<[operationId: string, inPath: ReadonlyArray<string>, inQuery: ReadonlyArray<string>]>([
  ["prompts.list", [], filters],
  ["prompts.listResolved", [], [...filters, "names", "prompt"]],
  ["prompts.get", ["id"], []],
  ["prompts.getResolved", ["id"], []],
  ["prompts.listVersions", ["id"], paging],
  ["prompts.getVersion", ["id", "version"], []]
])(
  "the operation %s has the path parameters %j, the query parameters %j, If-None-Match, Prefer and X-Request-Id",
  (operationId, inPath, inQuery) => {
    const expected = [
      ...inPath.map((name) => ["path", name, true, parameterSchemas[name]]),
      ...inQuery.map((name) => ["query", name, false, parameterSchemas[name]]),
      ...["If-None-Match", "Prefer", "X-Request-Id"].map((name) => [
        "header",
        name,
        false,
        { type: "string" }
      ])
    ]
    const found: ReadonlyArray<Json> = findOperation(operationId).parameters
    const parameters = found.map((parameter) => [
      ...[parameter.in, parameter.name, parameter.required],
      parameter.schema
    ])
    expect(parameters.toSorted()).toEqual(expected.toSorted())
  }
)

it("required parameters have an example, and optional parameters have none", () => {
  const parameters = allOperations.flatMap(({ operation }) => operation.parameters)
  for (const { name, required = false, example, examples, schema } of parameters)
    expect([name, examples, example, schema.example, schema.examples]).toEqual([
      name,
      required ? { default: { value: expect.anything() } } : undefined,
      undefined,
      undefined,
      undefined
    ])
})

it("the schemas of responses allow additional fields and further error codes", () => {
  expect(JSON.stringify(document)).not.toContain('"additionalProperties":false')
  expect(document.components.schemas.Error.properties.error.properties.code).toEqual({
    type: "string",
    description: expect.any(String),
    examples: expect.any(Array)
  })
})

it("every operation documents 200, 304, and each error that any request can get, with its code and condition", () => {
  for (const { operation } of operations) {
    const { 200: _, 304: notModified, ...responses } = operation.responses
    expect(notModified.content).toBeUndefined()
    for (const { status, code, condition, subject } of Object.values<ErrorSpec<never>>(errors))
      if (subject === "caller" || subject === "service")
        expect(responses[status].description).toContain(`\`${code}\`: ${condition}.`)
    for (const { content } of Object.values<Json>(responses))
      expect(content["application/json"].schema).toEqual({ $ref: "#/components/schemas/Error" })
  }
})

it("every operation, parameter, header and field of the OpenAPI document has a description, except the fields data, error and meta", () => {
  const findUndescribed = (part: Json, path: string): ReadonlyArray<string> => {
    if (typeof part !== "object" || part === null) return []
    if (Array.isArray(part)) return part.flatMap((item, i) => findUndescribed(item, `${path}/${i}`))
    return Object.entries<Json>(part).flatMap(([key, value]) => {
      const named = ["properties", "parameters", "headers", "responses"].includes(key)
      return [
        ...(named
          ? Object.entries<Json>(value).flatMap(([name, item]) =>
              deref(item).description || (key === "properties" && ["data", "error", "meta"].includes(name))
                ? []
                : [`${path}/${key}/${name}`]
            )
          : []),
        ...(key === "examples" ? [] : findUndescribed(value, `${path}/${key}`))
      ]
    })
  }
  expect(findUndescribed(document, "#")).toEqual([])
  for (const { operation } of allOperations)
    expect(operation).toMatchObject({ summary: expect.any(String), description: expect.any(String) })
})
