import * as HttpApi from "effect/http-api/HttpApi"
import { describe, expect, it } from "vitest"
import packageJson from "../../../package.json" with { type: "json" }
import { Api, operationalPaths } from "../../../src/adapters/inbound/contract/Api.ts"
import { type ApiError, errors } from "../../../src/adapters/inbound/contract/Errors.ts"
import { deref, document, type Json } from "./document.ts"

const allOperations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
  Object.entries<Json>(item).map(([method, operation]) => ({ path, method, operation }))
)
const operations = allOperations.filter(({ path }) => path.startsWith("/api/v1/"))
const findOperation = (id: string) =>
  operations.find(({ operation }) => operation.operationId === id)!.operation

it("the OpenAPI document describes the five routes of the contract and the operational paths except redirects, and no other path", () => {
  const routes: Array<string> = []
  HttpApi.reflect(Api, {
    onGroup: () => {},
    onEndpoint: ({ endpoint }) => {
      routes.push(`${endpoint.method} ${endpoint.path.replace(/:(\w+)/g, "{$1}")}`)
    }
  })
  const described = operations.map(({ path, method }) => `${method.toUpperCase()} ${path}`)
  expect(described).toEqual(routes)
  expect(described).toEqual([
    "GET /api/v1/prompts",
    "GET /api/v1/prompts/{id}",
    "GET /api/v1/prompts/{id}/resolved",
    "GET /api/v1/prompts/{id}/versions",
    "GET /api/v1/prompts/{id}/versions/{version}"
  ])
  const others = allOperations.slice(operations.length)
  const redirects = ["/", "/docs/"]
  expect(others.map(({ path, method }) => [path, method])).toEqual(
    operationalPaths.filter((path) => !redirects.includes(path)).map((path) => [path, "get"])
  )
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
  const headers = [
    ["header", "If-None-Match", false, { type: "string" }],
    ["header", "X-Request-Id", false, { type: "string" }]
  ]
  const id = ["path", "id", true, { type: "string", format: "uuid" }]
  const types = ["system", "user", "assistant", "template", "few-shot", "chain-of-thought"]

  it.each([
    [
      "prompts.list",
      [
        ...paging,
        ["query", "folder_id", false, { type: "string", format: "uuid" }],
        ["query", "tag", false, { type: "string" }],
        ["query", "type", false, { type: "string", enum: types }]
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
    "the operation %s has the parameters of the specification, If-None-Match and X-Request-Id",
    (operationId, expected) => {
      const parameters = findOperation(operationId).parameters.map(deref)
      expect(
        parameters.map((parameter: Json) => [
          parameter.in,
          parameter.name,
          parameter.required ?? false,
          parameter.schema
        ])
      ).toEqual([...expected, ...headers])
    }
  )
})

it("required parameters have an example, and optional parameters have none", () => {
  const parameters = allOperations.flatMap(({ operation }) => operation.parameters.map(deref))
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
  const schemas: ReadonlyArray<Json> = Object.values(document.components.schemas)
  expect(JSON.stringify(schemas)).not.toContain('"additionalProperties":false')
  const codes = schemas.flatMap(({ properties }) => properties.error?.properties.code ?? [])
  expect(codes.length).toBeGreaterThan(5)
  for (const { enum: closed, type } of codes) expect([closed, type]).toEqual([undefined, "string"])
})

type Tag = ApiError["_tag"]

/** The errors that only some operations document. Every operation documents all other errors. */
const specificErrors: Readonly<Record<string, ReadonlyArray<Tag>>> = {
  "prompts.list": ["InvalidParameter"],
  "prompts.get": ["PromptNotFound", "RouteNotFound"],
  "prompts.getResolved": ["PromptNotFound", "ResolvedTooLarge", "RouteNotFound"],
  "prompts.listVersions": ["InvalidParameter", "PromptNotFound", "RouteNotFound"],
  "prompts.getVersion": ["RouteNotFound", "VersionNotFound"]
}
const uncommonErrors = new Set<string>(Object.values(specificErrors).flat())
const commonErrors = Object.keys(errors).filter((tag) => !uncommonErrors.has(tag))

describe.each(Object.entries(specificErrors))("the responses of %s", (operationId, tags) => {
  const responses = Object.fromEntries(
    Object.entries<Json>(findOperation(operationId).responses).map(([status, response]) => [
      status,
      deref(response)
    ])
  )

  it(`${operationId} documents 200, 304 and every possible error, with status, code and message`, () => {
    const examples = Object.entries(responses).flatMap(([status, response]) =>
      Object.entries<Json>(response.content?.["application/json"].examples ?? {}).map(([name, { value }]) => [
        name,
        Number(status),
        value.error?.code,
        value.error?.message
      ])
    )
    const expected = [...tags, ...commonErrors].map((tag) => {
      const { status, code, message } = errors[tag as Tag]
      return [tag, status, code, typeof message === "string" ? message : expect.any(String)]
    })
    expect(examples.toSorted()).toEqual([["default", 200, undefined, undefined], ...expected].toSorted())
    const statuses = new Set([200, 304, ...expected.map(([, status]) => status as number)])
    expect(Object.keys(responses).map(Number)).toEqual([...statuses].toSorted((a, b) => a - b))
  })
})

it("each 200 and each 304 documents exactly two optional headers, Age and Cache-Status, which only responses during an outage have", () => {
  for (const { operation } of operations)
    for (const status of [200, 304]) {
      const headers = Object.entries<Json>(deref(operation.responses[status]).headers)
      const optional = headers.flatMap(([name, { required }]) => (required ? [] : [name]))
      expect(optional.toSorted()).toEqual(["Age", "Cache-Status"])
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
