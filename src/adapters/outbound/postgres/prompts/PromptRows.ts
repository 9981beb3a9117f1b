import * as Schema from "effect/Schema"
import { parseJson } from "../../../../domain/Json.ts"
import type { PageOfItems } from "../../../../domain/Page.ts"
import { Prompt, PromptSummary, RepeatedFields } from "../../../../domain/Prompt.ts"
import type { ResolutionSource } from "../../../../domain/Resolution.ts"
import { Version, VersionSummary } from "../../../../domain/Version.ts"
import type { Row } from "../driver/Query.ts"
import { makeFirstRowDecoder, makeRowDecoder, type RowDecoder } from "../driver/RowDecoder.ts"

const decodeTotal = makeFirstRowDecoder(Schema.Struct({ total: Schema.Int }))

/** Returns the decoder of a page with its total. The single row of an empty page has a null in `idColumn`. */
const makePageDecoder = <A>(item: Schema.Decoder<A>, idColumn: string) => {
  const decodeItems = makeRowDecoder(item)
  return (rows: ReadonlyArray<Row>): PageOfItems<A> => ({
    items: decodeItems(rows.filter((row) => row[idColumn] !== null)),
    total: decodeTotal(rows).total
  })
}

/** Decodes the rows of `selectPrompts`. */
export const decodePromptList = makePageDecoder(PromptSummary, "id")

export const decodePromptPage: RowDecoder<PromptSummary> = makeRowDecoder(PromptSummary)

/** Decodes the rows of `selectVersions`. */
export const decodeVersionList = makePageDecoder(VersionSummary, "version_number")

/** Decodes a row of `selectPromptsByKey`. */
export const decodePrompt: (row: Row) => Prompt = Schema.decodeUnknownSync(Prompt)

export const decodeVersion: (row: Row) => Version = Schema.decodeUnknownSync(Version)

const decodeSourceRow = Schema.decodeUnknownSync(
  Schema.Struct({
    ...RepeatedFields.fields,
    current_content: Schema.String,
    current_version: Prompt.fields.current_version,
    contents: Schema.Array(Schema.String),
    overrides: Schema.Array(Schema.String)
  })
)

/** Decodes a row of `selectSources` whose `too_large` is false. */
export const decodeSource = (row: Row): ResolutionSource => {
  const { contents, overrides, ...source } = decodeSourceRow(row)
  return {
    ...source,
    fragments: contents.map((content, index) => ({
      content,
      // Parsed on each access, because the parsed overrides of a whole prompt may take much more memory than their
      // texts.
      get variable_overrides() {
        return parseJson(overrides[index] ?? "{}")
      }
    }))
  }
}
