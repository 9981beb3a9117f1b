import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { InvalidParameter } from "../../domain/Page.ts"

/** A query's parameters by the WHATWG's form decoding (DESIGN.md section 5); a repeated one is all its values. */
export const parametersOf = (query: string): Readonly<Record<string, string | ReadonlyArray<string>>> => {
  const parameters: Record<string, string | Array<string>> = Object.create(null)
  // URLSearchParams drops one leading `?`, which would otherwise be part of the first name.
  for (const [name, value] of new URLSearchParams(`?${query}`)) {
    const known = parameters[name]
    if (known === undefined) parameters[name] = value
    else if (typeof known === "string") parameters[name] = [known, value]
    else known.push(value)
  }
  return parameters
}

const format = SchemaIssue.makeFormatterStandardSchemaV1()

/** The first parameter at fault and its rule; the value itself is never told. */
const invalidParameter = ({ issue }: Schema.SchemaError): InvalidParameter => {
  const [fault] = format(issue).issues
  return InvalidParameter(`${String(fault!.path?.[0])} ${fault!.message}`)
}

/** Reads parameters as their schema says. */
export const parameterReader = <A>(schema: Schema.Decoder<A>) => {
  const decode = Schema.decodeUnknownResult(schema)
  return (parameters: object): Result.Result<A, InvalidParameter> =>
    Result.mapError(decode(parameters), invalidParameter)
}
