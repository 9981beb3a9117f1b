import { readFileSync } from "node:fs"
import { STATUS_CODES } from "node:http"
import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { defaultRateLimits } from "../../../../application/Admission.ts"
import { defaultPerPage, InvalidParameter, maxPerPage, positiveIntRule } from "../../../../domain/Page.ts"
import { PromptType } from "../../../../domain/Prompt.ts"
import { rateLimited, windowSeconds } from "../../../../domain/RateWindow.ts"
import { maxVersionNumber } from "../../../../domain/Version.ts"
import { Api, EndpointResponses } from "../contract/Api.ts"
import {
  type ApiError,
  describeError,
  encodeErrorEnvelope,
  type ErrorDescription,
  errors
} from "../contract/Errors.ts"
import { requestIdPattern } from "../request/RequestId.ts"
import { cachingHeaders, computeEtag } from "../response/Representation.ts"
import { makeCodeSamples } from "./CodeSamples.ts"
import { describeConditions } from "./ErrorConditions.ts"
import { exampleIds, exampleResponses } from "./Examples.ts"
import { guide } from "./Guide.ts"

type Tag = ApiError["_tag"]
type Json = Readonly<Record<string, unknown>>

const requestId = "5e2cf1d3-0b5f-4f9e-9a63-8f0d6f6b9c1e"

const toIntegerSchema = (maximum: number): Json => ({ type: "integer", minimum: 1, maximum })
const toEnumSchema = (values: ReadonlyArray<string>): Json => ({
  type: "string",
  enum: [...new Set(values)]
})

/** Makes an example value that `/docs` fills in. */
const makeExample = (value: unknown): Json => ({ examples: { default: { value } } })
/**
 * Makes an example value that `/docs` sends only if the user selects the parameter. Without it, `/docs` sends a default
 * value or the first value of an enum.
 */
const makeDisabledExample = (value: unknown): Json => ({
  examples: { default: { value, "x-disabled": true } }
})

/**
 * Descriptions, schemas and examples of parameters. The contract's schemas describe a parameter only as text. Other
 * optional parameters and headers have no example, because many tools send every example.
 */
const parameterDetails: Readonly<Record<string, Json>> = {
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
    schema: { ...toIntegerSchema(Number.MAX_SAFE_INTEGER), default: 1 },
    ...makeDisabledExample(1)
  },
  per_page: {
    description: `Items per page. Values over ${maxPerPage} are reduced to ${maxPerPage}.`,
    schema: { ...toIntegerSchema(Number.MAX_SAFE_INTEGER), default: defaultPerPage },
    ...makeDisabledExample(defaultPerPage)
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
    schema: { type: "string", enum: PromptType.literals },
    ...makeDisabledExample(PromptType.literals[0])
  }
}

/** Request headers of every endpoint. */
const requestHeaders: Readonly<Record<string, Json>> = {
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

/** Response headers. The enum of a header without a schema is derived from the values that responses have. */
const responseHeaders: Readonly<Record<string, Json>> = {
  "X-Request-Id": {
    description: "Request id: the one that was sent, or a generated one.",
    schema: { type: "string", pattern: requestIdPattern.source }
  },
  "X-Content-Type-Options": { description: "Disables MIME sniffing." },
  "Cache-Control": { description: "Only successful responses may be cached, separately for each key." },
  Vary: { description: "Responses differ per API key." },
  ETag: {
    description: "Identifies this response. Send it as `If-None-Match` to revalidate.",
    schema: { type: "string", pattern: '^"[A-Za-z0-9_-]{43}"$' }
  },
  "WWW-Authenticate": {
    description: 'Bearer challenge, with `error="invalid_token"` if a key was sent and rejected.'
  },
  "Retry-After": {
    description: "Seconds to wait before the next attempt.",
    schema: { type: "integer", minimum: 1, maximum: windowSeconds }
  },
  "RateLimit-Policy": {
    description: "The limit that was exceeded: requests (`q`) per window of `w` seconds.",
    schema: { type: "string", pattern: `^"(key|process)";q=[0-9]+;w=${windowSeconds}$` }
  },
  RateLimit: {
    description: "Requests left (`r`) and seconds until the limit resets (`t`).",
    schema: { type: "string", pattern: '^"(key|process)";r=0;t=[0-9]+$' }
  }
}

/** Describes the headers of responses of one kind, derived from the headers of samples. */
const describeHeaders = (samples: ReadonlyArray<Readonly<Record<string, string>>>): Json => {
  const all: ReadonlyArray<Readonly<Record<string, string>>> = samples.map((headers) => ({
    ...headers,
    "x-request-id": requestId,
    "x-content-type-options": "nosniff"
  }))
  return Object.fromEntries(
    Object.entries(responseHeaders).flatMap(([name, header]) => {
      const values = all.flatMap((headers) => headers[name.toLowerCase()] ?? [])
      if (values.length === 0) return []
      const required = values.length === all.length
      const example =
        header.schema && (header.schema as Json).type === "integer" ? Number(values[0]) : values[0]
      return [[name, { ...header, required, schema: header.schema ?? toEnumSchema(values), example }]]
    })
  )
}

const etag = computeEtag(Buffer.from(JSON.stringify(exampleResponses["prompts.list"])))

const notModifiedResponse = {
  description: "The response still has the ETag in `If-None-Match`. There is no body.",
  headers: describeHeaders([{ ...cachingHeaders, etag }])
}

/** Returns a sample of an error. */
const sampleError = (tag: Tag): ErrorDescription => {
  switch (tag) {
    case "InvalidParameter":
      return describeError(InvalidParameter(`page ${positiveIntRule}`))
    case "RateLimited":
      return describeError(rateLimited("key", defaultRateLimits.perKey, 18_000))
    default:
      return describeError({ _tag: tag } as ApiError)
  }
}

/** Returns the codes of errors, each once. */
const findCodes = (tags: ReadonlyArray<Tag>) => [...new Set(tags.map((tag) => errors[tag].code))]

/** Describes the envelope of the errors with one status. */
const describeErrorEnvelope = (tags: ReadonlyArray<Tag>): Json => ({
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: {
        code: { ...toEnumSchema(findCodes(tags)), description: "Machine-readable code. Stable." },
        message: { type: "string", description: "Human-readable message. May change." }
      },
      required: ["code", "message"],
      additionalProperties: false
    }
  },
  required: ["error"],
  additionalProperties: false
})

/** Returns the name of the component of a status, such as `NotFound`. */
const toComponentName = (status: number): string => (STATUS_CODES[status] ?? "").replaceAll(" ", "")

/** Describes the response with one status, which several errors may share. */
const describeErrorResponse = (status: number, tags: ReadonlyArray<Tag>): Json => {
  const samples = tags.map(sampleError)
  return {
    description: describeConditions(tags),
    headers: describeHeaders(samples.map(({ headers }) => headers)),
    content: {
      "application/json": {
        schema: { $ref: `#/components/schemas/${toComponentName(status)}` },
        examples: Object.fromEntries(
          samples.map((sample, i) => [
            tags[i],
            { summary: sample.message, value: JSON.parse(encodeErrorEnvelope(sample)) }
          ])
        )
      }
    }
  }
}

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

/** All documented errors. No documented operation uses a method that is not allowed. */
const documentedErrors = (Object.keys(errors) as ReadonlyArray<Tag>).filter(
  (tag) => tag !== "MethodNotAllowed"
)

/** The errors that every operation shares. */
const commonErrors = documentedErrors.filter((tag) => !endpointSpecificErrors.has(tag))

/** Groups errors by status, in order, and makes one entry for each status. */
const groupByStatus = <A>(
  tags: ReadonlyArray<Tag>,
  makeEntry: (status: number, tags: ReadonlyArray<Tag>) => readonly [key: string | number, value: A]
): Readonly<Record<string, A>> =>
  Object.fromEntries(
    Array.from(
      Map.groupBy(tags, (tag) => errors[tag].status),
      ([status, tags]) => makeEntry(status, tags)
    )
  )

/** Describes the error responses of an operation. Responses that all operations share are referenced. */
const describeErrorResponses = (own: ReadonlyArray<Tag>) =>
  groupByStatus([...own, ...commonErrors], (status, tags) => [
    status,
    tags.some((tag) => endpointSpecificErrors.has(tag))
      ? describeErrorResponse(status, tags)
      : { $ref: `#/components/responses/${toComponentName(status)}` }
  ])

const describeSuccessResponse = (
  response: OpenApi.OpenApiSpecResponse | undefined,
  description: string,
  exampleBody: unknown
): Json => ({
  description,
  headers: describeHeaders([
    { ...cachingHeaders, etag: computeEtag(Buffer.from(JSON.stringify(exampleBody))) }
  ]),
  content: {
    "application/json": { ...response?.content?.["application/json"], ...makeExample(exampleBody) }
  }
})

/** Returns a path with the example values of its parameters. */
const fillPath = (path: string): string =>
  path.replaceAll(/\{(\w+)\}/g, (_, name: keyof typeof exampleIds) => String(exampleIds[name]))

/** Adds examples, code samples, headers and errors to a generated operation. */
const describeOperation = (path: string, generated: OpenApi.OpenAPISpecOperation): Json => {
  const { operationId } = generated
  // biome-ignore lint/style/noNonNullAssertion: every operation is generated from an endpoint
  const { success, errors } = responsesByOperation.get(operationId)!
  return {
    ...generated,
    parameters: [
      ...generated.parameters.map((parameter) => ({ ...parameter, ...parameterDetails[parameter.name] })),
      ...Object.keys(requestHeaders).map((name) => ({ $ref: `#/components/parameters/${name}` }))
    ],
    responses: {
      200: describeSuccessResponse(generated.responses[200], success, exampleResponses[operationId]),
      304: { $ref: "#/components/responses/NotModified" },
      ...describeErrorResponses(errors)
    },
    "x-codeSamples": makeCodeSamples(fillPath(path))
  }
}

/** Adds headers, errors and examples to the generated document: the contract's schemas cannot express them. */
const addDetails = ({ paths, components, ...spec }: OpenApi.OpenAPISpec): Json => ({
  ...spec,
  paths: Object.fromEntries(
    Object.entries(paths).map(([path, { get }]) => [
      path,
      get === undefined ? {} : { get: describeOperation(path, get) }
    ])
  ),
  components: {
    ...components,
    schemas: {
      ...components.schemas,
      ...groupByStatus(documentedErrors, (status, tags) => [
        toComponentName(status),
        describeErrorEnvelope(tags)
      ])
    },
    parameters: requestHeaders,
    responses: {
      NotModified: notModifiedResponse,
      ...groupByStatus(commonErrors, (status, tags) => [
        toComponentName(status),
        describeErrorResponse(status, tags)
      ])
    }
  }
})

const { version } = JSON.parse(readFileSync(new URL("../../../../../package.json", import.meta.url), "utf8"))

/** The contract with its documentation. */
export const DocumentedApi = Api.annotateMerge(
  OpenApi.annotations({
    title: "Prompt Retrieval",
    version,
    description: guide,
    servers: [{ url: "/" }],
    transform: (spec) => addDetails(spec as OpenApi.OpenAPISpec)
  })
)

/** The OpenAPI 3.1 document of the API (specification 4). */
export const openApi = OpenApi.fromApi(DocumentedApi)
