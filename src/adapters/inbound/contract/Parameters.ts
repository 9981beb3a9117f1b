import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import * as SchemaTransformation from "effect/SchemaTransformation"
import {
  defaultPerPage,
  InvalidParameter,
  maxPerPage,
  parsePositiveInt,
  positiveIntRule
} from "../../../domain/Page.ts"
import { FolderId, PromptType } from "../../../domain/Prompt.ts"
import { parseUuid } from "../../../domain/Uuid.ts"
import { maxVersionNumber } from "../../../domain/Version.ts"

/** A parameter that a request must not repeat. A repeated parameter arrives as an array, which the schema rejects. */
const Parameter = Schema.String.annotate({ message: "must be given at most once" })

/** A parameter that `parse` converts to a value of `target`. If `parse` returns undefined, the text breaks `rule`. */
const parsed = <A, E extends string | number>(
  target: Schema.Codec<A, E>,
  rule: string,
  parse: (text: string) => E | undefined
) =>
  Parameter.check(Schema.makeFilter((text: string) => (parse(text) === undefined ? rule : undefined))).pipe(
    Schema.decodeTo(
      target,
      SchemaTransformation.transform({ decode: (text) => parse(text) as E, encode: String })
    )
  )

const PositiveInt = parsed(Schema.Int, positiveIntRule, parsePositiveInt)
const FolderFilter = parsed(FolderId, "must be a UUID", parseUuid)
const TypeFilter = parsed(PromptType, `must be one of ${PromptType.literals.join(", ")}`, (text) =>
  PromptType.literals.find((type) => type === text)
)

const pagingFields = {
  page: Schema.optionalKey(PositiveInt),
  per_page: Schema.optionalKey(PositiveInt)
}

/** The query parameters that every list has. */
export const PageQuery = Schema.Struct(pagingFields)

/** The query parameters of the list of prompts (specification 4.1). */
export const ListQuery = Schema.Struct({
  ...pagingFields,
  folder_id: Schema.optionalKey(FolderFilter),
  tag: Schema.optionalKey(Parameter),
  type: Schema.optionalKey(TypeFilter)
})

/** The largest number of prompts that one request may name. */
export const maxPrompts = 100

const PromptsParameter = Schema.Union([Schema.String, Schema.Array(Schema.String)]).check(
  Schema.makeFilter((value: string | ReadonlyArray<string>) =>
    typeof value === "string" || value.length <= maxPrompts
      ? undefined
      : `must be given at most ${maxPrompts} times`
  )
)

const NamesParameter = parsed(Schema.Literal("true"), "must be true", (text) =>
  text === "true" ? text : undefined
)

/**
 * The query parameters of the list of resolved prompts. A request must not combine `prompt` with parameters of
 * `ListQuery`.
 */
export const ResolvedQuery = Schema.Struct({
  ...ListQuery.fields,
  prompt: Schema.optionalKey(PromptsParameter),
  names: Schema.optionalKey(NamesParameter)
})

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

/** Returns an error that names the first invalid parameter and its rule, but not the parameter's value. */
const toInvalidParameter = ({ issue }: Schema.SchemaError): InvalidParameter => {
  const [first = "the parameters are invalid"] = formatIssue(issue).issues.map(
    ({ path, message }) => `${String(path?.[0])} ${message}`
  )
  return InvalidParameter(first)
}

export const makeParameterDecoder = <A>(schema: Schema.Decoder<A>) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (parameters: object): Result.Result<A, InvalidParameter> =>
    Result.mapError(decode(parameters), toInvalidParameter)
}

const integerFrom1 = { type: "integer", minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
const uuid = { type: "string", format: "uuid" }

/**
 * The parameters in the OpenAPI document, by name. The schemas above describe every parameter only as a string. Only
 * required parameters have examples, because many tools send every example.
 */
export const parameterDetails: Readonly<Record<string, object>> = {
  id: {
    description:
      "Id of the prompt, or its name: the slug of the title. Only a prompt that is not archived has a name.",
    schema: { type: "string" },
    examples: { default: { value: "support-agent" } }
  },
  prompt: {
    description: `Ids or names of at most ${maxPrompts} prompts, one per parameter. Cannot be combined with filters or paging.`,
    schema: { type: "array", items: { type: "string" }, maxItems: maxPrompts }
  },
  names: {
    description: "With `true`, `meta.prompts` has the name and the version of each prompt.",
    schema: { type: "string", enum: ["true"] }
  },
  version: {
    description: "Version number, starting at 1.",
    schema: { ...integerFrom1, maximum: maxVersionNumber },
    examples: { default: { value: 2 } }
  },
  page: { description: "Page number, starting at 1.", schema: { ...integerFrom1, default: 1 } },
  per_page: {
    description: `Items per page. Values over ${maxPerPage} are reduced to ${maxPerPage}.`,
    schema: { ...integerFrom1, default: defaultPerPage }
  },
  folder_id: { description: "Return only prompts in this folder.", schema: uuid },
  tag: {
    description: "Return only prompts with this tag. The name is case-sensitive.",
    schema: { type: "string" }
  },
  type: {
    description: "Return only prompts of this type.",
    schema: { type: "string", enum: PromptType.literals }
  }
}
