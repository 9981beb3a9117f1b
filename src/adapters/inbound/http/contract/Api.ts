import * as Context from "effect/Context"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import * as OpenApi from "effect/http-api/OpenApi"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { positiveIntRule, PageMeta, parsePositiveInt } from "../../../../domain/Page.ts"
import { FolderId, Prompt, PromptSummary, PromptType, ResolvedPrompt } from "../../../../domain/Prompt.ts"
import { parseUuid } from "../../../../domain/Uuid.ts"
import { Version, VersionSummary } from "../../../../domain/Version.ts"
import type { ApiError } from "../Errors.ts"

const dataEnvelope = <A extends Schema.Top>(resource: A) => Schema.Struct({ data: resource })
const pageEnvelope = <A extends Schema.Top>(item: A) =>
  Schema.Struct({ data: Schema.Array(item), meta: PageMeta })

/** A query parameter, which may be given at most once. */
const Parameter = Schema.String.annotate({ message: "must be given at most once" })

const PositiveInt = Parameter.check(
  Schema.makeFilter((text: string) => (parsePositiveInt(text) === undefined ? positiveIntRule : undefined))
).pipe(
  Schema.decodeTo(
    Schema.Int,
    SchemaTransformation.transform({
      decode: (text: string) => Number(text),
      encode: (count: number) => String(count)
    })
  )
)

const FolderFilter = Parameter.check(
  Schema.makeFilter((text: string) => (parseUuid(text) === undefined ? "must be a UUID" : undefined))
).pipe(Schema.decodeTo(FolderId, SchemaTransformation.toLowerCase() as never))

const TypeFilter = Parameter.check(
  Schema.makeFilter((text: string) =>
    Schema.is(PromptType)(text) ? undefined : `must be one of ${PromptType.literals.join(", ")}`
  )
).pipe(Schema.decodeTo(PromptType, SchemaTransformation.passthrough() as never))

const paging = {
  page: Schema.optionalKey(PositiveInt),
  per_page: Schema.optionalKey(PositiveInt)
}

/** The query parameters of every list. */
export const PageQuery = Schema.Struct(paging)

/** The query parameters of the list of prompts (specification 4.1). */
export const ListQuery = Schema.Struct({
  ...paging,
  folder_id: Schema.optionalKey(FolderFilter),
  tag: Schema.optionalKey(Parameter),
  type: Schema.optionalKey(TypeFilter)
})

/** The security scheme of every endpoint. `App.ts` enforces it: this contract has no handlers. */
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

/** The errors of an endpoint in addition to the errors that all endpoints share. */
export class EndpointErrors extends Context.Service<EndpointErrors, ReadonlyArray<ApiError["_tag"]>>()(
  "prompt-retrieval/OwnErrors"
) {}

/** Adds the documentation of an endpoint. */
const withDocs = (docs: {
  readonly summary: string
  readonly description: string
  readonly errors: ReadonlyArray<ApiError["_tag"]>
}) => Context.merge(OpenApi.annotations(docs), Context.make(EndpointErrors, docs.errors))

const promptParams = { id: Schema.String }

export const Endpoints = HttpApiGroup.make("prompts")
  .add(
    HttpApiEndpoint.get("list", "/prompts", {
      query: ListQuery,
      success: pageEnvelope(PromptSummary)
    }).annotateMerge(
      withDocs({
        summary: "List prompts",
        description:
          "Returns the prompts of the workspace without their content, most recently updated first. Archived prompts are omitted. Filters are combined with AND. A page past the end is empty.",
        errors: ["InvalidParameter"]
      })
    ),
    HttpApiEndpoint.get("get", "/prompts/:id", {
      params: promptParams,
      success: dataEnvelope(Prompt)
    }).annotateMerge(
      withDocs({
        summary: "Get a prompt",
        description: "Returns a prompt with its content and tags, even if the prompt is archived.",
        errors: ["PromptNotFound", "RouteNotFound"]
      })
    ),
    HttpApiEndpoint.get("getResolved", "/prompts/:id/resolved", {
      params: promptParams,
      success: dataEnvelope(ResolvedPrompt)
    }).annotateMerge(
      withDocs({
        summary: "Get a prompt's resolved content",
        description:
          "Returns the content of the prompt followed by its fragments with their slots filled, ready to send to a model. Slots in the content of the prompt stay unfilled: the caller fills them.",
        errors: ["PromptNotFound", "RouteNotFound", "ResolvedTooLarge"]
      })
    ),
    HttpApiEndpoint.get("listVersions", "/prompts/:id/versions", {
      params: promptParams,
      query: PageQuery,
      success: pageEnvelope(VersionSummary)
    }).annotateMerge(
      withDocs({
        summary: "List a prompt's versions",
        description: "Returns the versions of a prompt without their content, newest first.",
        errors: ["InvalidParameter", "PromptNotFound", "RouteNotFound"]
      })
    ),
    HttpApiEndpoint.get("getVersion", "/prompts/:id/versions/:version", {
      params: { ...promptParams, version: Schema.String },
      success: dataEnvelope(Version)
    }).annotateMerge(
      withDocs({
        summary: "Get a version of a prompt",
        description: "Returns a version of a prompt with its content.",
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
 * The contract of the API (specification 4), without handlers. The contract types the handlers in `Endpoints.ts`, provides their schemas
 * and generates the OpenAPI document. Effect's HttpApi server is not used: it reaches 0.3 to 0.5 of the throughput of bare `node:http`,
 * and its router accepts paths that this API rejects.
 */
export const Api = HttpApi.make("prompt-retrieval").add(Endpoints)
