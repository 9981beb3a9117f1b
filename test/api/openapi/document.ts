import { Ajv2020, type AnySchemaObject, type ValidateFunction } from "ajv/dist/2020.js"
import { expect } from "vitest"
import { makeOpenApi } from "../../../src/adapters/inbound/http/docs/OpenApi.ts"
import type { HttpResponse } from "../../support/clients/rawHttp.ts"

// biome-ignore lint/suspicious/noExplicitAny: the tests read arbitrary parts of a document
export type Json = any

/** The OpenAPI document that `/openapi.json` returns if `PUBLIC_URL` is unset. */
export const document: Json = JSON.parse(JSON.stringify(makeOpenApi("/")))

/** Returns a part of the document. Follows the reference if the part is a `$ref`. */
const deref = (part: Json): Json =>
  part.$ref === undefined
    ? part
    : part.$ref
        .slice(2)
        .split("/")
        .reduce((at: Json, key: string) => at[key], document)

/** Returns a copy of a schema that rejects every field that the schema does not define. */
const closeObjects = (part: Json): Json =>
  JSON.parse(JSON.stringify(part), (_, value) =>
    value?.type === "object" && value.properties !== undefined
      ? { ...value, additionalProperties: false }
      : value
  )

const ajv = new Ajv2020({ strict: false, validateFormats: false })
const components = closeObjects({ schemas: document.components.schemas })
const validators = new Map<AnySchemaObject, ValidateFunction>()

/** Returns true if a value matches a schema of the document and has only the fields of that schema. */
const matches = (schema: AnySchemaObject, value: unknown): boolean => {
  const validate = validators.get(schema) ?? ajv.compile({ ...closeObjects(schema), components })
  validators.set(schema, validate)
  return validate(value)
}

/** Every operation that responds with JSON. */
const operations = Object.entries<Json>(document.paths)
  .filter(([template]) => template !== "/docs")
  .map(([template, { get }]) => ({
    pattern: new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}(\\?|$)`),
    responses: get.responses
  }))

/** General HTTP headers, which the document does not describe. */
const transportHeaders = ["connection", "content-length", "content-type", "date"]

/**
 * Expects the response of a documented path to match the document. The document must describe the status, the fields of
 * the body and all headers.
 */
export const expectDocumented = (target: string, { status, headers, body }: HttpResponse): void => {
  const operation = operations.find(({ pattern }) => pattern.test(target))
  if (operation === undefined) return
  expect(operation.responses).toHaveProperty(String(status))
  const { headers: described, content } = deref(operation.responses[status])
  const values = new Map(headers)
  const violations = Object.entries<Json>(described).flatMap(([name, { required, schema }]) => {
    const text = values.get(name.toLowerCase())
    const isValid =
      text === undefined ? !required : matches(schema, schema.type === "integer" ? Number(text) : text)
    return isValid ? [] : [name]
  })
  const names = [...transportHeaders, ...Object.keys(described).map((name) => name.toLowerCase())]
  violations.push(...[...values.keys()].filter((name) => !names.includes(name)))
  const media = content?.["application/json"]
  if (body !== "" && media !== undefined && !matches(media.schema, JSON.parse(body))) violations.push("body")
  expect({ target, status, violations }).toEqual({ target, status, violations: [] })
}
