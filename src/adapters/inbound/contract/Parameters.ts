import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"
import { formatIssue } from "../../../application/transfer/ProblemList.ts"
import { FolderId } from "../../../domain/FolderId.ts"
import { InvalidParameter, parsePositiveInt, positiveIntRule } from "../../../domain/Page.ts"
import { PromptType } from "../../../domain/Prompt.ts"
import { parseUuid } from "../../../domain/Uuid.ts"

/** A parameter that may be given at most once. A repeated parameter arrives as an array. */
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
).pipe(Schema.decodeTo(FolderId, SchemaTransformation.toLowerCase()))

const TypeFilter = Parameter.check(
  Schema.makeFilter((text: string) =>
    Schema.is(PromptType)(text) ? undefined : `must be one of ${PromptType.literals.join(", ")}`
  )
).pipe(Schema.decodeTo(PromptType, SchemaTransformation.passthroughSupertype<PromptType, string>()))

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
