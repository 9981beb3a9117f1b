import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { Prompt, PromptSummary, ResolvedPrompt } from "../../../domain/Prompt.ts"
import { Version, VersionSummary } from "../../../domain/Version.ts"
import { DataEnvelope, PageEnvelope, ResolvedEnvelope } from "./Envelope.ts"
import { apiErrors, serviceErrors } from "./ErrorResponses.ts"
import {
  documentHeaders,
  promptHeaders,
  requestHeaders,
  resourceHeaders,
  resourceRequestHeaders,
  statusHeaders
} from "./Headers.ts"
import { ListQuery, PageQuery, ResolvedQuery } from "./Parameters.ts"

/**
 * The security scheme of every endpoint. `Admission` enforces the scheme, because `HttpApi` routes no requests
 * (decision 8).
 */
export class Authorization extends HttpApiMiddleware.Service<Authorization>()(
  "prompt-retrieval/adapters/inbound/contract/Authorization",
  {
    security: {
      bearer: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
        HttpApiSecurity.annotateMerge(
          OpenApi.annotations({
            description: "API key of the workspace: `key_live_` followed by 64 hexadecimal digits.",
            format: "key_live_ followed by 64 hexadecimal digits"
          })
        )
      )
    }
  }
) {}

const withDocs = (summary: string, description: string) => OpenApi.annotations({ summary, description })

const notModified = HttpApiSchema.Empty(304).annotate({ description: "An ETag in `If-None-Match` matches." })

/** Returns the schemas of the two responses with a resource: the 200 with this body, and the 304 without a body. */
const withNotModified = <A extends Schema.Top, H extends Schema.Top>(body: A, headers: H) =>
  [HttpApiSchema.WithHeaders(body, headers), HttpApiSchema.WithHeaders(notModified, headers)] as const

interface EndpointOptions<Params, Query, Success> {
  readonly summary: string
  readonly description: string
  readonly params?: Params
  readonly query?: Query
  readonly success: Success
}

/**
 * Makes the contract of an endpoint of the API. `Errors.ts` determines which errors the endpoint reports. Effect's
 * codecs are off, because `Endpoints.ts` decodes the parameters and encodes the responses.
 */
const get = <
  const Name extends string,
  const Path extends `/${string}`,
  const Success extends ReadonlyArray<Schema.Top>,
  Params extends Record<string, Schema.Encoder<string | undefined>> = never,
  Query extends Record<string, Schema.Encoder<string | ReadonlyArray<string> | undefined>> = never
>(
  name: Name,
  path: Path,
  { summary, description, params, query, success }: EndpointOptions<Params, Query, Success>
) =>
  HttpApiEndpoint.get(name, path, {
    disableCodecs: true,
    headers: resourceRequestHeaders,
    params,
    query,
    success,
    error: apiErrors({ path, hasQuery: query !== undefined })
  }).annotateMerge(withDocs(summary, description))

const promptParams = { id: Schema.String }

/** The contracts of the endpoints (specification 4). */
export const PromptsGroup = HttpApiGroup.make("prompts")
  .add(
    get("list", "/prompts", {
      query: ListQuery.fields,
      success: withNotModified(PageEnvelope(PromptSummary), resourceHeaders),
      summary: "List prompts",
      description:
        "Returns the prompts of the workspace without their content, most recently updated first. Archived prompts are omitted. Filters are combined with AND. Unknown parameters are ignored. A page past the end is empty."
    }),
    get("get", "/prompts/:id", {
      params: promptParams,
      success: withNotModified(DataEnvelope(Prompt), promptHeaders),
      summary: "Get a prompt",
      description: "Returns a prompt with its content and tags, even if it is archived."
    }),
    get("getResolved", "/prompts/:id/resolved", {
      params: promptParams,
      success: withNotModified(DataEnvelope(ResolvedPrompt), promptHeaders),
      summary: "Get a prompt's resolved content",
      description:
        "Returns the content of the prompt followed by its fragments with their slots filled. Slots (`{{name}}`) in the content of the prompt stay unfilled: the caller fills them. The endpoint takes no parameters."
    }),
    get("listResolved", "/resolved", {
      query: ResolvedQuery.fields,
      success: withNotModified(ResolvedEnvelope, resourceHeaders),
      summary: "List resolved prompts",
      description:
        "Returns the resolved content of several prompts: of a page of the list of prompts, or of the prompts that `prompt` parameters name, in the order of these parameters. Omits prompts that do not exist, and prompts that are too large for a response."
    }),
    get("listVersions", "/prompts/:id/versions", {
      params: promptParams,
      query: PageQuery.fields,
      success: withNotModified(PageEnvelope(VersionSummary), resourceHeaders),
      summary: "List a prompt's versions",
      description: "Returns the versions of a prompt without their content, highest number first."
    }),
    get("getVersion", "/prompts/:id/versions/:version", {
      params: { ...promptParams, version: Schema.String },
      success: withNotModified(DataEnvelope(Version), resourceHeaders),
      summary: "Get a version of a prompt",
      description: "Returns a version of a prompt with its content."
    })
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Prompts",
      description: "Prompts, their resolved content and their versions."
    })
  )
  .middleware(Authorization)
  .prefix("/api/v1")

const Status = Schema.Struct({ status: Schema.Literal("ok").annotate({ description: "Always `ok`." }) })

const withStatus = {
  disableCodecs: true,
  success: HttpApiSchema.WithHeaders(Status, statusHeaders),
  error: serviceErrors
} as const

const withDocument = <A extends Schema.Top>(body: A) =>
  ({
    disableCodecs: true,
    headers: requestHeaders,
    success: withNotModified(body, documentHeaders),
    error: serviceErrors
  }) as const

/** The contracts of the operational paths, except the paths that only redirect. */
const ServiceGroup = HttpApiGroup.make("service")
  .add(
    HttpApiEndpoint.get("getHealth", "/healthz", withStatus).annotateMerge(
      withDocs("Check that the process runs", "Returns 200 even while the process cannot serve requests.")
    ),
    HttpApiEndpoint.get("getReadiness", "/readyz", withStatus).annotateMerge(
      withDocs(
        "Check that the service can serve requests",
        "Returns 503 while the service cannot serve requests. Use this path for the health checks of load balancers."
      )
    ),
    HttpApiEndpoint.get(
      "getOpenApi",
      "/openapi.json",
      withDocument(Schema.Record(Schema.String, Schema.Unknown))
    ).annotateMerge(withDocs("Get the OpenAPI document", "Returns this document.")),
    HttpApiEndpoint.get(
      "getDocs",
      "/docs",
      withDocument(Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/html" })))
    ).annotateMerge(
      withDocs("Get the documentation", "Returns a page that shows this document and can send requests.")
    )
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Service",
      description:
        "Health and documentation of the service. These paths need no key and do not count against rate limits."
    })
  )

/**
 * The contract of the API (specification 4), without handlers. `Endpoints.ts` gets the types and the schemas of its
 * handlers from this contract, and `OpenApi.ts` generates the OpenAPI document from the contract. The service does not
 * use Effect's HttpApi server. That server has only 0.3 to 0.5 times the throughput of bare `node:http`, and its router
 * accepts paths that this API rejects.
 */
export const Api = HttpApi.make("prompt-retrieval").add(PromptsGroup, ServiceGroup)

/** The paths outside the API. Requests to these paths need no key and do not count against the rate limits. */
export const operationalPaths = ["/", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs/"] as const

export type OperationalPath = (typeof operationalPaths)[number]
