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

const single = <A extends Schema.Top>(resource: A) => Schema.Struct({ data: resource })
const page = <A extends Schema.Top>(item: A) => Schema.Struct({ data: Schema.Array(item), meta: PageMeta })

/** A query parameter as it is written: at most once. */
const Parameter = Schema.String.annotate({ message: "must be given at most once" })

const Count = Parameter.check(
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
  page: Schema.optionalKey(Count),
  per_page: Schema.optionalKey(Count)
}

/** The query of any list. */
export const PageQuery = Schema.Struct(paging)

/** The query of the list of prompts (SPEC.md section 4.1). */
export const ListQuery = Schema.Struct({
  ...paging,
  folder_id: Schema.optionalKey(FolderFilter),
  tag: Schema.optionalKey(Parameter),
  type: Schema.optionalKey(TypeFilter)
})

/** Every endpoint wants a key; `App.ts` admits its caller before anything else is looked at. */
export class Authorization extends HttpApiMiddleware.Service<Authorization>()(
  "prompt-retrieval/Authorization",
  {
    security: {
      bearer: HttpApiSecurity.http({ scheme: "bearer" }).pipe(
        HttpApiSecurity.annotateMerge(
          OpenApi.annotations({
            description: "An API key of your workspace: `key_live_` and 64 hexadecimal digits.",
            format: "key_live_ and 64 hexadecimal digits"
          })
        )
      )
    }
  }
) {}

/** The errors that an endpoint has beside those that any endpoint may answer with. */
export class EndpointErrors extends Context.Service<EndpointErrors, ReadonlyArray<ApiError["_tag"]>>()(
  "prompt-retrieval/OwnErrors"
) {}

/** What the description of the API says of an endpoint. */
const withDocs = (words: {
  readonly summary: string
  readonly description: string
  readonly errors: ReadonlyArray<ApiError["_tag"]>
}) => Context.merge(OpenApi.annotations(words), Context.make(EndpointErrors, words.errors))

const prompt = { id: Schema.String }

export const Endpoints = HttpApiGroup.make("prompts")
  .add(
    HttpApiEndpoint.get("list", "/prompts", {
      query: ListQuery,
      success: page(PromptSummary)
    }).annotateMerge(
      withDocs({
        summary: "List prompts",
        description:
          "The workspace's prompts without their content, the last updated first, archived ones left out. Filters add up; a page beyond the last is empty.",
        errors: ["InvalidParameter"]
      })
    ),
    HttpApiEndpoint.get("get", "/prompts/:id", { params: prompt, success: single(Prompt) }).annotateMerge(
      withDocs({
        summary: "Get a prompt",
        description: "One prompt with its content and tags. Archived prompts are found too.",
        errors: ["PromptNotFound", "RouteNotFound"]
      })
    ),
    HttpApiEndpoint.get("getResolved", "/prompts/:id/resolved", {
      params: prompt,
      success: single(ResolvedPrompt)
    }).annotateMerge(
      withDocs({
        summary: "Get a prompt's resolved content",
        description:
          "The prompt's content, then each of its fragments with its slots filled, ready to send to a model. Slots in the prompt's own content stay: they are yours to fill.",
        errors: ["PromptNotFound", "RouteNotFound", "ResolvedTooLarge"]
      })
    ),
    HttpApiEndpoint.get("listVersions", "/prompts/:id/versions", {
      params: prompt,
      query: PageQuery,
      success: page(VersionSummary)
    }).annotateMerge(
      withDocs({
        summary: "List a prompt's versions",
        description: "The prompt's versions without their content, the newest first.",
        errors: ["InvalidParameter", "PromptNotFound", "RouteNotFound"]
      })
    ),
    HttpApiEndpoint.get("getVersion", "/prompts/:id/versions/:version", {
      params: { ...prompt, version: Schema.String },
      success: single(Version)
    }).annotateMerge(
      withDocs({
        summary: "Get a version of a prompt",
        description: "One version of a prompt, with its content.",
        errors: ["VersionNotFound", "RouteNotFound"]
      })
    )
  )
  .annotateMerge(
    OpenApi.annotations({ title: "Prompts", description: "Prompts, resolved content and versions." })
  )
  .middleware(Authorization)
  .prefix("/api/v1")

/** The contract of SPEC.md section 4, without any handler. */
export const Api = HttpApi.make("prompt-retrieval").add(Endpoints)
