import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Predicate from "effect/Predicate"
import { Api, EndpointResponses } from "../../contract/Api.ts"
import { errors, type ErrorTag } from "../../contract/Errors.ts"
import { makeCodeSamples } from "./CodeSamples.ts"
import { describeErrorEnvelope, describeErrorResponse, toComponentName } from "./ErrorResponses.ts"
import { exampleIds, exampleResponses } from "./Examples.ts"
import { guide } from "./Guide.ts"
import { describedOperationalPaths, operationalTag, statusSchema } from "./OperationalPaths.ts"
import { describeSuccessHeaders } from "./ResponseHeaders.ts"
import { makeStaticPage, type StaticPage } from "../response/StaticPage.ts"
import { programVersion } from "../../../../application/support/ProgramVersion.ts"
import type { JsonObject } from "../../../../domain/Json.ts"
import { defaultPerPage, maxPerPage } from "../../../../domain/Page.ts"
import { PromptType } from "../../../../domain/Prompt.ts"
import { maxVersionNumber } from "../../../../domain/Version.ts"

const toIntegerSchema = (maximum: number): JsonObject => ({ type: "integer", minimum: 1, maximum })

/** Makes an example. `/docs` fills in the example of a parameter. */
const makeExample = (value: unknown): JsonObject => ({ examples: { default: { value } } })

/**
 * Descriptions, schemas and examples of parameters. The contract's schemas describe every parameter only as a string.
 * Only required parameters have examples, because many tools send every example.
 */
const parameterDetails: Readonly<Record<string, JsonObject>> = {
  id: {
    description: "Id of the prompt.",
    schema: { type: "string", format: "uuid" },
    ...makeExample(exampleIds.id)
  },
  version: {
    description: "Version number, starting at 1.",
    schema: toIntegerSchema(maxVersionNumber),
    ...makeExample(exampleIds.version)
  },
  page: {
    description: "Page number, starting at 1.",
    schema: { ...toIntegerSchema(Number.MAX_SAFE_INTEGER), default: 1 }
  },
  per_page: {
    description: `Items per page. Values over ${maxPerPage} are reduced to ${maxPerPage}.`,
    schema: { ...toIntegerSchema(Number.MAX_SAFE_INTEGER), default: defaultPerPage }
  },
  folder_id: {
    description: "Return only prompts in this folder.",
    schema: { type: "string", format: "uuid" }
  },
  tag: {
    description: "Return only prompts with this tag. The name is case-sensitive.",
    schema: { type: "string" }
  },
  type: {
    description: "Return only prompts of this type.",
    schema: { type: "string", enum: PromptType.literals }
  }
}

/** The request headers that every endpoint of the API reads. */
const requestHeaders: Readonly<Record<string, JsonObject>> = {
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    description:
      "ETag of an earlier response, or a list of ETags. Returns 304 if one of them is still current.",
    schema: { type: "string" }
  },
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    description:
      "Request id: 1 to 128 characters of `A-Z a-z 0-9 . _ -`. The response and the service log repeat it. An invalid id is replaced.",
    schema: { type: "string" }
  }
}

const describeNotModified = (hasPromptVersion: boolean) => ({
  description: "The response still has the ETag in `If-None-Match`. There is no body.",
  headers: describeSuccessHeaders(hasPromptVersion)
})

/** The responses of each operation, apart from the errors that all operations share. */
const responsesByOperation = new Map<string, EndpointResponses["Service"]>()
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group }) => {
    const responses = Context.getUnsafe(endpoint.annotations, EndpointResponses)
    responsesByOperation.set(`${group.identifier}.${endpoint.identifier}`, responses)
  }
})
const endpointSpecificErrors = new Set([...responsesByOperation.values()].flatMap(({ errors }) => errors))

const allErrors = Object.keys(errors) as ReadonlyArray<ErrorTag>

const commonErrors = allErrors.filter((tag) => !endpointSpecificErrors.has(tag))

/** Groups errors by status, keeps their order, and makes one entry for each status. */
const groupByStatus = <A>(
  tags: ReadonlyArray<ErrorTag>,
  makeEntry: (status: number, tags: ReadonlyArray<ErrorTag>) => readonly [key: string | number, value: A]
): Readonly<Record<string, A>> =>
  Object.fromEntries(
    Array.from(
      Map.groupBy(tags, (tag) => errors[tag].status),
      ([status, tags]) => makeEntry(status, tags)
    )
  )

/** Describes the error responses of an operation. Responses that all operations share become references. */
const describeErrorResponses = (specificErrors: ReadonlyArray<ErrorTag>) =>
  groupByStatus([...specificErrors, ...commonErrors], (status, tags) => [
    status,
    tags.some((tag) => endpointSpecificErrors.has(tag))
      ? describeErrorResponse(status, tags)
      : { $ref: `#/components/responses/${toComponentName(status)}` }
  ])

const describeSuccessResponse = (
  response: OpenApi.OpenApiSpecResponse | undefined,
  description: string,
  exampleBody: unknown,
  hasPromptVersion: boolean
): JsonObject => ({
  description,
  headers: describeSuccessHeaders(hasPromptVersion),
  content: {
    "application/json": { ...response?.content?.["application/json"], ...makeExample(exampleBody) }
  }
})

/** Replaces the parameters in a path with their example values. */
const fillPath = (path: string): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: keyof typeof exampleIds) => String(exampleIds[name]))

/** Adds examples, code samples, headers and errors to a generated operation. */
const describeOperation = (path: string, generated: OpenApi.OpenAPISpecOperation): JsonObject => {
  const { operationId } = generated
  // biome-ignore lint/style/noNonNullAssertion: every operation is generated from an endpoint
  const { success, errors, hasPromptVersion } = responsesByOperation.get(operationId)!
  const notModified = hasPromptVersion ? "PromptNotModified" : "NotModified"
  return {
    ...generated,
    parameters: [
      ...generated.parameters.map((parameter) => ({ ...parameter, ...parameterDetails[parameter.name] })),
      ...Object.keys(requestHeaders).map((name) => ({ $ref: `#/components/parameters/${name}` }))
    ],
    responses: {
      200: describeSuccessResponse(
        generated.responses[200],
        success,
        exampleResponses[operationId],
        hasPromptVersion === true
      ),
      304: { $ref: `#/components/responses/${notModified}` },
      ...describeErrorResponses(errors)
    },
    "x-codeSamples": makeCodeSamples(fillPath(path))
  }
}

/**
 * Removes `additionalProperties: false` everywhere in a schema of responses. Later versions may add fields to every
 * object, and a validator that uses an older document must accept the new fields.
 */
const openSchema = (part: unknown): unknown => {
  if (Array.isArray(part)) return part.map(openSchema)
  if (!Predicate.isObject(part)) return part
  return Object.fromEntries(
    Object.entries(part).flatMap(([key, value]) =>
      key === "additionalProperties" && value === false ? [] : [[key, openSchema(value)]]
    )
  )
}

/** Adds headers, errors and examples, which the contract's schemas cannot express. */
const addDetails = ({ paths, components, tags, ...spec }: OpenApi.OpenAPISpec): JsonObject => ({
  ...spec,
  tags: [...tags, operationalTag],
  paths: {
    ...Object.fromEntries(
      Object.entries(paths).map(([path, { get }]) => [
        path,
        get === undefined ? {} : { get: describeOperation(path, get) }
      ])
    ),
    ...describedOperationalPaths
  },
  components: {
    ...components,
    schemas: {
      ...(openSchema(components.schemas) as JsonObject),
      Status: statusSchema,
      ...groupByStatus(allErrors, (status, tags) => [toComponentName(status), describeErrorEnvelope(tags)])
    },
    parameters: requestHeaders,
    responses: {
      NotModified: describeNotModified(false),
      PromptNotModified: describeNotModified(true),
      ...groupByStatus(commonErrors, (status, tags) => [
        toComponentName(status),
        describeErrorResponse(status, tags)
      ])
    }
  }
})

/** Returns the contract with its documentation. `transform` changes the generated document. */
const documentApi = (serverUrl: string, transform: (document: JsonObject) => JsonObject) =>
  Api.annotateMerge(
    OpenApi.annotations({
      title: "Prompt Retrieval",
      version: programVersion,
      description: guide,
      servers: [{ url: serverUrl }],
      transform: (spec) => transform(addDetails(spec as OpenApi.OpenAPISpec))
    })
  )

/** The OpenAPI 3.1 document of the API (specification 4), for callers that reach the service at `/`. */
export const openApi = OpenApi.fromApi(documentApi("/", (document) => document))

/**
 * Marks the optional parameters of a document so that Scalar sends them only if the user selects them. Scalar would
 * send the default value of an unmarked parameter, or the first value of its enum.
 */
const deselectOptionalParameters = (part: unknown): unknown => {
  if (Array.isArray(part)) return part.map(deselectOptionalParameters)
  if (!Predicate.isObject(part)) return part
  const isOptionalParameter =
    "in" in part && "schema" in part && !("required" in part && part.required === true)
  return isOptionalParameter
    ? { ...part, examples: { default: { "x-disabled": true } } }
    : Object.fromEntries(Object.entries(part).map(([key, value]) => [key, deselectOptionalParameters(value)]))
}

export const documentForDocsPage = (serverUrl: string) =>
  documentApi(serverUrl, (document) => deselectOptionalParameters(document) as JsonObject)

/** Makes the page `/openapi.json` for callers that reach the service at `serverUrl`. The URL may be relative. */
export const makeOpenApiPage = (serverUrl: string): Promise<StaticPage> =>
  makeStaticPage(JSON.stringify({ ...openApi, servers: [{ url: serverUrl }] }), "application/json")
