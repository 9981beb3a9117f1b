import { readFileSync } from "node:fs"
import { STATUS_CODES } from "node:http"
import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { positiveIntRule, defaultPerPage, InvalidParameter, maxPerPage } from "../../../../domain/Page.ts"
import { PromptType } from "../../../../domain/Prompt.ts"
import { rateLimited } from "../../../../domain/RateWindow.ts"
import { maxVersionNumber } from "../../../../domain/Version.ts"
import { Api, EndpointErrors } from "../contract/Api.ts"
import { cachingHeaders, computeEtag } from "../response/Representation.ts"
import { type ApiError, type ErrorDescription, describeError, errorBody, errors } from "../Errors.ts"
import { exampleResponses, exampleIds } from "./Examples.ts"
import { requestIdPattern } from "../request/RequestId.ts"

type Tag = ApiError["_tag"]
type Json = Readonly<Record<string, unknown>>

const requestId = "5e2cf1d3-0b5f-4f9e-9a63-8f0d6f6b9c1e"

const integer = (maximum: number): Json => ({ type: "integer", minimum: 1, maximum })
const constant = (...values: ReadonlyArray<string>): Json => ({ type: "string", enum: [...new Set(values)] })

/** An example, which the page starts from. */
const example = (value: unknown): Json => ({ examples: { default: { value } } })
/** An example, which the page sends for whoever ticks it only. */
const optional = (value: unknown): Json => ({ examples: { default: { value, "x-disabled": true } } })

/** What the contract's schemas can't say of a parameter, for in the request it is text. */
const parameters: Readonly<Record<string, Json>> = {
  id: {
    description: "The prompt's id.",
    schema: { type: "string", format: "uuid" },
    ...example(exampleIds.id)
  },
  version: {
    description: "The version's number.",
    schema: integer(maxVersionNumber),
    ...example(exampleIds.version)
  },
  page: {
    description: "Which page, counted from 1.",
    schema: { ...integer(Number.MAX_SAFE_INTEGER), default: 1 },
    ...optional(1)
  },
  per_page: {
    description: `How many items a page holds; more than ${maxPerPage} counts as ${maxPerPage}.`,
    schema: { ...integer(Number.MAX_SAFE_INTEGER), default: defaultPerPage },
    ...optional(defaultPerPage)
  },
  folder_id: {
    description: "Only prompts of this folder.",
    schema: { type: "string", format: "uuid" },
    ...optional(exampleIds.folder_id)
  },
  tag: {
    description: "Only prompts with the tag of exactly this name.",
    schema: { type: "string" },
    ...optional("production")
  },
  type: {
    description: "Only prompts of this type.",
    schema: { type: "string", enum: PromptType.literals },
    ...optional("system")
  }
}

const etag = computeEtag(Buffer.from(JSON.stringify(exampleResponses["prompts.list"])))

/** Headers that any request may have. */
const requestHeaders: Readonly<Record<string, Json>> = {
  IfNoneMatch: {
    name: "If-None-Match",
    in: "header",
    description: "ETags of answers that you have; 304 if one of them is current.",
    schema: { type: "string" },
    ...optional(etag)
  },
  RequestId: {
    name: "X-Request-Id",
    in: "header",
    description:
      "A name for the request, 1 to 128 of `A-Z a-z 0-9 . _ -`, that the answer and the service's log repeat; anything else is replaced.",
    schema: { type: "string" },
    ...optional(requestId)
  }
}

/** Headers of answers; one without a schema has no other values than those that it is seen with. */
const responseHeaders: Readonly<Record<string, Json>> = {
  "X-Request-Id": {
    description: "The request's name, yours or a new one.",
    schema: { type: "string", pattern: requestIdPattern.source }
  },
  "X-Content-Type-Options": { description: "Nobody should guess the content type." },
  "Cache-Control": { description: "Only successes may be stored, each for one key only." },
  Vary: { description: "Every key has answers of its own." },
  ETag: {
    description: "Names these bytes; send it back as If-None-Match.",
    schema: { type: "string", pattern: '^"[A-Za-z0-9_-]{43}"$' }
  },
  "WWW-Authenticate": { description: "That a key is asked for, and whether one was refused." },
  "Retry-After": {
    description: "In how many seconds it is worth trying again.",
    schema: { type: "integer", minimum: 1, maximum: 60 }
  },
  "RateLimit-Policy": {
    description: "The limit that was exceeded, its requests (`q`) and its window (`w`) in seconds.",
    schema: { type: "string", pattern: '^"(key|process)";q=[0-9]+;w=60$' }
  },
  RateLimit: {
    description: "What is left of that limit (`r`), and in how many seconds it resets (`t`).",
    schema: { type: "string", pattern: '^"(key|process)";r=0;t=[0-9]+$' }
  }
}

/** The headers of answers of one kind, from the headers that each of these answers has. */
const headersOf = (seen: ReadonlyArray<Readonly<Record<string, string>>>): Json => {
  const all: ReadonlyArray<Readonly<Record<string, string>>> = seen.map((headers) => ({
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
      return [[name, { ...header, required, schema: header.schema ?? constant(...values), example }]]
    })
  )
}

const notModified = {
  description: "You have the current answer already.",
  headers: headersOf([{ ...cachingHeaders, etag }])
}

/** One error of each kind, as an answer. */
const sampleOf = (tag: Tag): ErrorDescription => {
  switch (tag) {
    case "InvalidParameter":
      return describeError(InvalidParameter(`page ${positiveIntRule}`))
    case "RateLimited":
      return describeError(rateLimited("key", 100, 18_000))
    default:
      return describeError({ _tag: tag } as ApiError)
  }
}

const codesOf = (tags: ReadonlyArray<Tag>) => [...new Set(tags.map((tag) => errors[tag].code))]

const errorSchema = (tags: ReadonlyArray<Tag>): Json => ({
  type: "object",
  properties: {
    error: {
      type: "object",
      properties: {
        code: { ...constant(...codesOf(tags)), description: "Stable: what to switch on." },
        message: { type: "string", description: "For people." }
      },
      required: ["code", "message"],
      additionalProperties: false
    }
  },
  required: ["error"],
  additionalProperties: false
})

/** The name of what is shared by answers of one status. */
const nameOf = (status: number): string => STATUS_CODES[status]!.replaceAll(" ", "")

/** The answer of one status, which stands for each of some errors. */
const errorResponse = (status: number, tags: ReadonlyArray<Tag>): Json => {
  const samples = tags.map(sampleOf)
  return {
    description: codesOf(tags).join(" or "),
    headers: headersOf(samples.map(({ headers }) => headers)),
    content: {
      "application/json": {
        schema: { $ref: `#/components/schemas/${nameOf(status)}` },
        examples: Object.fromEntries(
          samples.map((sample, i) => [
            tags[i],
            { summary: sample.message, value: JSON.parse(errorBody(sample)) }
          ])
        )
      }
    }
  }
}

const ownErrors = new Map<string, ReadonlyArray<Tag>>()
HttpApi.reflect(Api, {
  onGroup: () => {},
  onEndpoint: ({ endpoint, group }) => {
    const own = Context.getOrElse(endpoint.annotations, EndpointErrors, () => [])
    ownErrors.set(`${group.identifier}.${endpoint.identifier}`, own)
  }
})
const owned = new Set([...ownErrors.values()].flat())

/** What an operation may answer with: no operation has a method that is not allowed. */
const answerable = (Object.keys(errors) as ReadonlyArray<Tag>).filter((tag) => tag !== "MethodNotAllowed")

/** What any operation may answer with. */
const anywhere = answerable.filter((tag) => !owned.has(tag))

/** One entry for each status that the errors have, in order. */
const byStatus = <A>(
  tags: ReadonlyArray<Tag>,
  entry: (status: number, tags: ReadonlyArray<Tag>) => readonly [key: string | number, value: A]
): Readonly<Record<string, A>> =>
  Object.fromEntries(
    Array.from(
      Map.groupBy(tags, (tag) => errors[tag].status),
      ([status, tags]) => entry(status, tags)
    )
  )

const errorResponses = (own: ReadonlyArray<Tag>) =>
  byStatus([...own, ...anywhere], (status, tags) => [
    status,
    tags.some((tag) => owned.has(tag))
      ? errorResponse(status, tags)
      : { $ref: `#/components/responses/${nameOf(status)}` }
  ])

const successResponse = (response: OpenApi.OpenApiSpecResponse, answer: unknown): Json => ({
  description: "Success",
  headers: headersOf([{ ...cachingHeaders, etag: computeEtag(Buffer.from(JSON.stringify(answer))) }]),
  content: { "application/json": { ...response.content!["application/json"], ...example(answer) } }
})

const operation = (generated: OpenApi.OpenAPISpecOperation): Json => {
  const { operationId } = generated
  return {
    ...generated,
    parameters: [
      ...generated.parameters.map((parameter) => ({ ...parameter, ...parameters[parameter.name] })),
      ...Object.keys(requestHeaders).map((name) => ({ $ref: `#/components/parameters/${name}` }))
    ],
    responses: {
      200: successResponse(generated.responses[200]!, exampleResponses[operationId]),
      304: { $ref: "#/components/responses/NotModified" },
      ...errorResponses(ownErrors.get(operationId)!)
    }
  }
}

/** Adds to what is generated what the contract's schemas can't say: headers, errors, examples. */
const complete = ({ paths, components, ...spec }: OpenApi.OpenAPISpec): Json => ({
  ...spec,
  paths: Object.fromEntries(Object.entries(paths).map(([path, { get }]) => [path, { get: operation(get!) }])),
  components: {
    ...components,
    schemas: {
      ...components.schemas,
      ...byStatus(answerable, (status, tags) => [nameOf(status), errorSchema(tags)])
    },
    parameters: requestHeaders,
    responses: {
      NotModified: notModified,
      ...byStatus(anywhere, (status, tags) => [nameOf(status), errorResponse(status, tags)])
    }
  }
})

const { version } = JSON.parse(readFileSync(new URL("../../../../../package.json", import.meta.url), "utf8"))

const description = `Prompts, their versions and their resolved content, read with an API key.

An answer is \`{"data": …}\`, with \`meta\` where it is a page of a list; an error is \`{"error": {"code", "message"}}\`.
A key reads its own workspace: whatever is another's is not found. Requests are limited a minute, for each key and for
the whole service. \`HEAD\` is answered as \`GET\`, without the body.

To try it: [/docs](/docs). For programs: [/openapi.json](/openapi.json).`

/** The contract with all that its description says. */
export const DocumentedApi = Api.annotateMerge(
  OpenApi.annotations({
    title: "Prompt Retrieval",
    version,
    description,
    servers: [{ url: "/" }],
    transform: (spec) => complete(spec as OpenApi.OpenAPISpec)
  })
)

/** The OpenAPI 3.1 document of SPEC.md section 4. */
export const openApi = OpenApi.fromApi(DocumentedApi)
