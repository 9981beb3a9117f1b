import { errors, type ErrorTag } from "../../contract/Errors.ts"
import type { OperationalPath } from "../../contract/Api.ts"
import { toComponentName } from "./ErrorResponses.ts"
import type { JsonObject } from "../../../../domain/Json.ts"
import { healthHeaders, pageHeaders, unmodifiedPageHeaders } from "./ResponseHeaders.ts"

/** The tag of the paths outside the API. */
export const operationalTag = {
  name: "Service",
  description:
    "Health and documentation of the service. These paths need no key and do not count against rate limits."
}

/** The errors that all paths share, without the errors of admission. */
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

const referenceParameters = (...names: ReadonlyArray<string>) =>
  names.map((name) => ({ $ref: `#/components/parameters/${name}` }))

const describeHealth = (
  id: string,
  texts: { readonly summary: string; readonly description: string; readonly ok: string },
  tags: ReadonlyArray<ErrorTag>
): JsonObject => ({
  get: {
    tags: [operationalTag.name],
    operationId: `service.${id}`,
    summary: texts.summary,
    description: texts.description,
    security: [],
    parameters: referenceParameters("RequestId"),
    responses: {
      200: {
        description: texts.ok,
        headers: healthHeaders,
        content: {
          "application/json": {
            schema: { $ref: "#/components/schemas/Status" },
            examples: { default: { value: { status: "ok" } } }
          }
        }
      },
      ...describeErrors(tags)
    }
  }
})

const describePage = (
  id: string,
  texts: { readonly summary: string; readonly description: string; readonly ok: string },
  contentType: string,
  schema: JsonObject
): JsonObject => ({
  get: {
    tags: [operationalTag.name],
    operationId: `service.${id}`,
    summary: texts.summary,
    description: texts.description,
    security: [],
    parameters: referenceParameters("IfNoneMatch", "RequestId"),
    responses: {
      200: {
        description: texts.ok,
        headers: pageHeaders,
        content: { [contentType]: { schema } }
      },
      304: {
        description: "The page still has the ETag in `If-None-Match`. There is no body.",
        headers: unmodifiedPageHeaders
      },
      ...describeErrors([...operationalErrors, "Unavailable"])
    }
  }
})

/** The schema of the responses of the health endpoints. */
export const statusSchema: JsonObject = {
  type: "object",
  description: "The status of the service.",
  properties: { status: { type: "string", description: "Always `ok`.", enum: ["ok"] } },
  required: ["status"]
}

/** The descriptions of the paths outside the API, as `paths` of the OpenAPI document. The redirects are left out. */
export const describedOperationalPaths: Readonly<
  Record<Exclude<OperationalPath, "/" | "/docs/">, JsonObject>
> = {
  "/healthz": describeHealth(
    "getHealth",
    {
      summary: "Check that the process runs",
      description: "Returns 200 while the process runs, even while it cannot serve requests.",
      ok: "The process runs."
    },
    operationalErrors
  ),
  "/readyz": describeHealth(
    "getReadiness",
    {
      summary: "Check that the service can serve requests",
      description:
        "Returns 200 while the service can serve requests, otherwise 503. It is for load balancers.",
      ok: "The service can serve requests."
    },
    [...operationalErrors, "Unavailable"]
  ),
  "/openapi.json": describePage(
    "getOpenApi",
    {
      summary: "Get the OpenAPI document",
      description: "Returns this document.",
      ok: "The OpenAPI document."
    },
    "application/json",
    { type: "object", description: "An OpenAPI 3.1 document." }
  ),
  "/docs": describePage(
    "getDocs",
    {
      summary: "Get the interactive documentation",
      description:
        "Returns a page that shows the OpenAPI document and sends requests. `/` and `/docs/` redirect to it.",
      ok: "The interactive documentation."
    },
    "text/html",
    { type: "string", description: "An HTML page." }
  )
}
