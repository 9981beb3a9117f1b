import { errors, type ErrorTag } from "../../contract/Errors.ts"
import type { OperationalPath } from "../../contract/Api.ts"
import { toComponentName } from "./ErrorResponses.ts"
import type { JsonObject } from "../../../../domain/Json.ts"
import { healthHeaders, pageHeaders, unmodifiedPageHeaders } from "./ResponseHeaders.ts"

export const operationalTag = {
  name: "Service",
  description:
    "Health and documentation of the service. These paths need no key and do not count against rate limits."
}

/** The errors that every operational path can return. */
const operationalErrors: ReadonlyArray<ErrorTag> = [
  "BadRequest",
  "MethodNotAllowed",
  "RequestTimeout",
  "ExpectationFailed",
  "HeadersTooLarge",
  "InternalError"
]

const describeErrors = (tags: ReadonlyArray<ErrorTag>): JsonObject =>
  Object.fromEntries(
    tags.map((tag) => {
      const { status } = errors[tag]
      return [status, { $ref: `#/components/responses/${toComponentName(status)}` }]
    })
  )

interface OperationTexts {
  readonly id: string
  readonly summary: string
  readonly description: string
  /** The description of the response with status 200. */
  readonly ok: string
}

const describeOperation = (
  { id, summary, description, ok }: OperationTexts,
  parameters: ReadonlyArray<string>,
  response: JsonObject,
  otherResponses: JsonObject
): JsonObject => ({
  get: {
    tags: [operationalTag.name],
    operationId: `service.${id}`,
    summary,
    description,
    security: [],
    parameters: parameters.map((name) => ({ $ref: `#/components/parameters/${name}` })),
    responses: { 200: { description: ok, ...response }, ...otherResponses }
  }
})

const describeHealth = (texts: OperationTexts, errors: ReadonlyArray<ErrorTag>): JsonObject => {
  const body = {
    schema: { $ref: "#/components/schemas/Status" },
    examples: { default: { value: { status: "ok" } } }
  }
  const response = { headers: healthHeaders, content: { "application/json": body } }
  return describeOperation(texts, ["RequestId"], response, describeErrors(errors))
}

const describePage = (texts: OperationTexts, contentType: string, schema: JsonObject): JsonObject => {
  const response = { headers: pageHeaders, content: { [contentType]: { schema } } }
  return describeOperation(texts, ["IfNoneMatch", "RequestId"], response, {
    304: {
      description: "The page still has the ETag in `If-None-Match`. There is no body.",
      headers: unmodifiedPageHeaders
    },
    ...describeErrors([...operationalErrors, "Unavailable"])
  })
}

export const statusSchema: JsonObject = {
  type: "object",
  description: "The status of the service.",
  properties: { status: { type: "string", description: "Always `ok`.", enum: ["ok"] } },
  required: ["status"]
}

/** The paths outside the API, in the form of `paths` in the OpenAPI document. Paths that only redirect are omitted. */
export const describedOperationalPaths: Readonly<
  Record<Exclude<OperationalPath, "/" | "/docs/">, JsonObject>
> = {
  "/healthz": describeHealth(
    {
      id: "getHealth",
      summary: "Check that the process runs",
      description: "Returns 200 while the process runs, even while it cannot serve requests.",
      ok: "The process runs."
    },
    operationalErrors
  ),
  "/readyz": describeHealth(
    {
      id: "getReadiness",
      summary: "Check that the service can serve requests",
      description:
        "Returns 200 while the service can serve requests, otherwise 503. It is for load balancers.",
      ok: "The service can serve requests."
    },
    [...operationalErrors, "Unavailable"]
  ),
  "/openapi.json": describePage(
    {
      id: "getOpenApi",
      summary: "Get the OpenAPI document",
      description: "Returns this document.",
      ok: "The OpenAPI document."
    },
    "application/json",
    { type: "object", description: "An OpenAPI 3.1 document." }
  ),
  "/docs": describePage(
    {
      id: "getDocs",
      summary: "Get the interactive documentation",
      description:
        "Returns a page that shows the OpenAPI document and sends requests. `/` and `/docs/` redirect to it.",
      ok: "The interactive documentation."
    },
    "text/html",
    { type: "string", description: "An HTML page." }
  )
}
