import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import { Prompt, PromptSummary, ResolvedPrompt } from "../../../domain/Prompt.ts"
import { Version, VersionSummary } from "../../../domain/Version.ts"
import { DataEnvelope, PageEnvelope } from "./Envelope.ts"
import type { ApiError } from "./Errors.ts"
import { ListQuery, PageQuery } from "./Parameters.ts"

/** The security scheme of every endpoint. `App.ts` enforces the scheme, because this contract has no handlers. */
export class Authorization extends HttpApiMiddleware.Service<Authorization>()(
  "prompt-retrieval/Authorization",
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

/** The responses of an endpoint, apart from the errors that all endpoints share. */
export class EndpointResponses extends Context.Service<
  EndpointResponses,
  {
    /** A description of the body of a successful response. */
    readonly success: string
    /** True if a successful response has the header `Prompt-Version`. */
    readonly hasPromptVersion?: boolean
    readonly errors: ReadonlyArray<ApiError["_tag"]>
  }
>()("prompt-retrieval/EndpointResponses") {}

const withDocs = ({
  summary,
  description,
  ...responses
}: { readonly summary: string; readonly description: string } & EndpointResponses["Service"]) =>
  Context.merge(OpenApi.annotations({ summary, description }), Context.make(EndpointResponses, responses))

const promptParams = { id: Schema.String }

/** The contracts of the endpoints (specification 4). */
export const PromptsGroup = HttpApiGroup.make("prompts")
  .add(
    HttpApiEndpoint.get("list", "/prompts", {
      query: ListQuery,
      success: PageEnvelope(PromptSummary)
    }).annotateMerge(
      withDocs({
        summary: "List prompts",
        description:
          "Returns the prompts of the workspace without their content, most recently updated first. Archived prompts are omitted. Filters are combined with AND. Unknown parameters are ignored. A page past the end is empty.",
        success: "One page of the prompts that match the filters.",
        errors: ["InvalidParameter"]
      })
    ),
    HttpApiEndpoint.get("get", "/prompts/:id", {
      params: promptParams,
      success: DataEnvelope(Prompt)
    }).annotateMerge(
      withDocs({
        summary: "Get a prompt",
        description: "Returns a prompt with its content and tags, even if the prompt is archived.",
        success: "The prompt with its content, folder and tags.",
        hasPromptVersion: true,
        errors: ["PromptNotFound", "RouteNotFound"]
      })
    ),
    HttpApiEndpoint.get("getResolved", "/prompts/:id/resolved", {
      params: promptParams,
      success: DataEnvelope(ResolvedPrompt)
    }).annotateMerge(
      withDocs({
        summary: "Get a prompt's resolved content",
        description:
          "Returns the content of the prompt followed by its fragments with their slots filled. Slots (`{{name}}`) in the content of the prompt stay unfilled: the caller fills them. The endpoint takes no parameters.",
        success: "The content of the prompt with its fragments.",
        hasPromptVersion: true,
        errors: ["PromptNotFound", "RouteNotFound", "ResolvedTooLarge"]
      })
    ),
    HttpApiEndpoint.get("listVersions", "/prompts/:id/versions", {
      params: promptParams,
      query: PageQuery,
      success: PageEnvelope(VersionSummary)
    }).annotateMerge(
      withDocs({
        summary: "List a prompt's versions",
        description: "Returns the versions of a prompt without their content, highest number first.",
        success: "One page of the versions of the prompt.",
        errors: ["InvalidParameter", "PromptNotFound", "RouteNotFound"]
      })
    ),
    HttpApiEndpoint.get("getVersion", "/prompts/:id/versions/:version", {
      params: { ...promptParams, version: Schema.String },
      success: DataEnvelope(Version)
    }).annotateMerge(
      withDocs({
        summary: "Get a version of a prompt",
        description: "Returns a version of a prompt with its content.",
        success: "The version with its content.",
        errors: ["VersionNotFound", "RouteNotFound"]
      })
    )
  )
  .annotateMerge(
    OpenApi.annotations({
      title: "Prompts",
      description: "Prompts, their resolved content and their versions."
    })
  )
  .middleware(Authorization)
  .prefix("/api/v1")

/**
 * The contract of the API (specification 4), without handlers. `Endpoints.ts` gets the types of its handlers and their
 * schemas from this contract, and `OpenApi.ts` generates the OpenAPI document from it. The HttpApi server of Effect is
 * not used: its throughput is 0.3 to 0.5 times that of bare `node:http`, and its router accepts paths that this API
 * rejects.
 */
export const Api = HttpApi.make("prompt-retrieval").add(PromptsGroup)

/**
 * The operational paths, which are outside the API. Requests to these paths need no key and do not count against the
 * rate limits.
 */
export const operationalPaths = ["/", "/healthz", "/readyz", "/openapi.json", "/docs", "/docs/"] as const

export type OperationalPath = (typeof operationalPaths)[number]
