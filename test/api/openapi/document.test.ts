import { describe, expect, it } from "vitest"
import packageJson from "../../../package.json" with { type: "json" }
import { type ApiError, errors } from "../../../src/adapters/inbound/contract/Errors.ts"
import { deref, document, type Json } from "./document.ts"

const allOperations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
  Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation }))
)
const operations = allOperations.filter(({ path }) => path.startsWith("/api/v1/"))
const findOperation = (id: string) =>
  operations.find(({ operation }) => operation.operationId === id)!.operation

it("the OpenAPI document describes the routes of the API and the operational paths except redirects, and no other path", () => {
  const described = allOperations.map(({ path, method }) => `${method.toUpperCase()} ${path}`)
  expect(described).toEqual([
    "GET /api/v1/prompts",
    "GET /api/v1/prompts/{id}",
    "GET /api/v1/prompts/{id}/resolved",
    "GET /api/v1/resolved",
    "GET /api/v1/prompts/{id}/versions",
    "GET /api/v1/prompts/{id}/versions/{version}",
    "GET /healthz",
    "GET /readyz",
    "GET /openapi.json",
    "GET /docs"
  ])
  const others = allOperations.slice(operations.length)
  for (const { operation } of others) expect(operation).toMatchObject({ tags: ["Service"], security: [] })
  expect(document.tags.map(({ name }: Json) => name)).toEqual(["Prompts", "Service"])
})

it("the OpenAPI document has a title, the version of the package and bearer authentication", () => {
  expect(document.openapi).toMatch(/^3\.1\./)
  expect(document.info).toEqual({
    title: "Prompt Retrieval",
    version: packageJson.version,
    description: expect.any(String)
  })
  expect(document.servers).toEqual([{ url: "/" }])
  expect(document.components.securitySchemes).toEqual({
    bearer: {
      type: "http",
      scheme: "bearer",
      bearerFormat: expect.any(String),
      description: expect.any(String)
    }
  })
  for (const { operation } of operations) expect(operation.security).toEqual([{ bearer: [] }])
})

describe("the parameters in the OpenAPI document", () => {
  const positiveInt = (value: number) => ({
    type: "integer",
    minimum: 1,
    maximum: Number.MAX_SAFE_INTEGER,
    default: value
  })
  const paging = [
    ["query", "page", false, positiveInt(1)],
    ["query", "per_page", false, positiveInt(20)]
  ]
  const headers = ["If-None-Match", "Prefer", "X-Request-Id"].map((name) => [
    "header",
    name,
    false,
    { type: "string" }
  ])
  const id = ["path", "id", true, { type: "string" }]
  const types = ["system", "user", "assistant", "template", "few-shot", "chain-of-thought"]

  const filters = [
    ...paging,
    ["query", "folder_id", false, { type: "string", format: "uuid" }],
    ["query", "tag", false, { type: "string" }],
    ["query", "type", false, { type: "string", enum: types }]
  ]

  it.each<[operationId: string, parameters: ReadonlyArray<unknown>]>([
    ["prompts.list", filters],
    [
      "prompts.listResolved",
      [
        ...filters,
        ["query", "names", false, { type: "string", enum: ["true"] }],
        ["query", "prompt", false, { type: "array", items: { type: "string" }, maxItems: 100 }]
      ]
    ],
    ["prompts.get", [id]],
    ["prompts.getResolved", [id]],
    ["prompts.listVersions", [id, ...paging]],
    [
      "prompts.getVersion",
      [id, ["path", "version", true, { type: "integer", minimum: 1, maximum: 2147483647 }]]
    ]
  ])(
    "the operation %s has the parameters of the specification, If-None-Match, Prefer and X-Request-Id",
    (operationId, expected) => {
      const parameters = findOperation(operationId).parameters.map((parameter: Json) => [
        parameter.in,
        parameter.name,
        parameter.required,
        parameter.schema
      ])
      expect(parameters.toSorted()).toEqual([...expected, ...headers].toSorted())
    }
  )
})

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

type Tag = ApiError["_tag"]

/** The errors that only some operations document. Every operation documents all other errors. */
const specificErrors: Readonly<Record<string, ReadonlyArray<Tag>>> = {
  "prompts.list": ["InvalidParameter"],
  "prompts.get": ["PromptNotFound", "RouteNotFound"],
  "prompts.getResolved": ["PromptNotFound", "ResolvedTooLarge", "RouteNotFound"],
  "prompts.listResolved": ["InvalidParameter", "PageTooLarge"],
  "prompts.listVersions": ["InvalidParameter", "PromptNotFound", "RouteNotFound"],
  "prompts.getVersion": ["VersionNotFound", "RouteNotFound"]
}
const uncommonErrors = new Set<string>(Object.values(specificErrors).flat())
const commonErrors = Object.keys(errors).filter((tag) => !uncommonErrors.has(tag))

it.each(Object.entries(specificErrors))(
  "%s documents 200, 304 and every possible error, with status, code and condition",
  (operationId, tags) => {
    const { 200: _, 304: __, ...responses } = findOperation(operationId).responses
    const described = Object.entries<Json>(responses).map(([status, { description }]) => [
      status,
      description
    ])
    const byStatus = Map.groupBy(
      [...tags, ...commonErrors] as ReadonlyArray<Tag>,
      (tag) => errors[tag].status
    )
    const expected = Array.from(byStatus, ([status, tags]) => [
      String(status),
      tags.map((tag) => `\`${errors[tag].code}\`: ${errors[tag].condition}.`).join(" ")
    ])
    expect(described.toSorted()).toEqual(expected.toSorted())
    for (const { content } of Object.values<Json>(responses))
      expect(content["application/json"].schema).toEqual({ $ref: "#/components/schemas/Error" })
  }
)

it("each 200 and each 304 documents exactly three optional headers: Age and Cache-Status during an outage, and Preference-Applied after a wait", () => {
  for (const { operation } of operations)
    for (const status of [200, 304]) {
      const headers = Object.entries<Json>(operation.responses[status].headers)
      const optional = headers.flatMap(([name, { required }]) => (required ? [] : [name]))
      expect(optional.toSorted()).toEqual(["age", "cache-status", "preference-applied"])
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
