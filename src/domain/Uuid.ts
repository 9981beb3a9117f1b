import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaTransformation from "effect/SchemaTransformation"

const uuidPattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/

/** A UUID in canonical form: 8-4-4-4-12 lowercase hexadecimal digits. */
export const Uuid = Schema.String.check(
  Schema.isPattern(uuidPattern, {
    message: "must be a UUID",
    toJsonSchema: () => ({ format: "uuid", pattern: uuidPattern.source })
  })
).annotate({ examples: ["cef02dd3-514f-5723-8852-d3305a2e66a8"] })

const UuidInAnyCase = Schema.String.check(
  Schema.isPattern(/^[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$/u, { message: "must be a UUID" })
).annotate({ description: "UUID in any case." })

/**
 * Returns a schema that decodes an id in any letter case to its canonical form. Checks a text before the conversion to
 * lowercase, so that a long text is not copied.
 *
 * @internal
 */
export const inAnyCase = <Id extends string>(id: Schema.Codec<Id, string>): Schema.Codec<Id, string> =>
  UuidInAnyCase.pipe(Schema.decodeTo(id, SchemaTransformation.toLowerCase()))

const decodeUuid = Schema.decodeUnknownResult(inAnyCase(Uuid))

/** Parses a UUID with dashes, in any letter case. Returns its canonical form, or `undefined` for any other text. */
export const parseUuid = (text: string): string | undefined => Result.getOrUndefined(decodeUuid(text))
