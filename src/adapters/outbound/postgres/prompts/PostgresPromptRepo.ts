import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { type PromptFilter, PromptRepo } from "../../../../application/ports/PromptRepo.ts"
import { withSpanIfTraced } from "../../../../application/support/Observability.ts"
import { parseJson } from "../../../../domain/Json.ts"
import type { PageOfItems } from "../../../../domain/Page.ts"
import {
  Prompt,
  type PromptId,
  PromptNotFound,
  PromptSummary,
  RepeatedFields
} from "../../../../domain/Prompt.ts"
import { type ResolutionSource, ResolvedTooLarge } from "../../../../domain/Resolution.ts"
import { Version, VersionNotFound, VersionSummary } from "../../../../domain/Version.ts"
import { makeBatchedLookup } from "../driver/BatchedLookup.ts"
import type { Row } from "../driver/Query.ts"
import { makeFirstRowDecoder, makeRowDecoder } from "../driver/RowDecoder.ts"
import { Database } from "../Database.ts"
import * as queries from "./PromptQueries.ts"

const decodeTotal = makeFirstRowDecoder(Schema.Struct({ total: Schema.Int }))

/** Returns the decoder of a page with its total. The single row of an empty page has a null in `idColumn`. */
const makePageDecoder = <A>(item: Schema.Decoder<A>, idColumn: string) => {
  const decodeItems = makeRowDecoder(item)
  return (rows: ReadonlyArray<Row>): PageOfItems<A> => ({
    items: decodeItems(rows.filter((row) => row[idColumn] !== null)),
    total: decodeTotal(rows).total
  })
}

const decodePromptList = makePageDecoder(PromptSummary, "id")

const decodePromptPage = makeRowDecoder(PromptSummary)

const decodeVersionList = makePageDecoder(VersionSummary, "version_number")

const decodePrompt: (row: Row) => Prompt = Schema.decodeUnknownSync(Prompt)

const decodeVersion: (row: Row) => Version = Schema.decodeUnknownSync(Version)

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
const decodeSource = (row: Row): ResolutionSource => {
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

/** Returns false for a tag that no prompt can have, because PostgreSQL cannot store its name. */
const canMatch = ({ tag }: PromptFilter): boolean =>
  tag === undefined || (!tag.includes("\0") && tag.isWellFormed())

const toSource = (
  id: PromptId,
  row: Row | undefined
): Effect.Effect<ResolutionSource, PromptNotFound | ResolvedTooLarge> => {
  if (row === undefined) return Effect.fail(PromptNotFound)
  return row.too_large === true ? Effect.fail(ResolvedTooLarge(id)) : Effect.succeed(decodeSource(row))
}

const makePromptRepo = Effect.gen(function* () {
  const { queryPrompts } = yield* Database
  // A slow statement of one workspace must not delay other workspaces.
  const partitionKey = ({ workspace }: queries.PromptKey) => workspace
  const getPromptRow = yield* makeBatchedLookup(queryPrompts, queries.selectPromptsByKey, partitionKey)
  const getSourceRow = yield* makeBatchedLookup(queryPrompts, queries.selectSources, partitionKey)

  return PromptRepo.of({
    list: withSpanIfTraced("PromptRepo.list")((workspace, filter, page) =>
      canMatch(filter)
        ? Effect.map(queryPrompts(queries.selectPrompts(workspace, filter, page)), decodePromptList)
        : Effect.succeed({ items: [], total: 0 })
    ),
    listPage: withSpanIfTraced("PromptRepo.listPage")((workspace, filter, page) =>
      canMatch(filter)
        ? Effect.map(queryPrompts(queries.selectPromptPage(workspace, filter, page)), decodePromptPage)
        : Effect.succeed([])
    ),
    get: withSpanIfTraced("PromptRepo.get")((workspace, id) =>
      Effect.flatMap(getPromptRow({ workspace, id }), (row) =>
        row === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(decodePrompt(row))
      )
    ),
    getSource: withSpanIfTraced("PromptRepo.getSource")((workspace, id) =>
      Effect.flatMap(getSourceRow({ workspace, id }), (row) => toSource(id, row))
    ),
    listVersions: withSpanIfTraced("PromptRepo.listVersions")((workspace, id, oldest, page) =>
      Effect.flatMap(queryPrompts(queries.selectVersions(workspace, id, oldest, page)), (found) =>
        found.length === 0 ? Effect.fail(PromptNotFound) : Effect.succeed(decodeVersionList(found))
      )
    ),
    getVersion: withSpanIfTraced("PromptRepo.getVersion")((workspace, id, number, oldest) =>
      Effect.flatMap(queryPrompts(queries.selectVersion(workspace, id, number, oldest)), ([row]) =>
        row === undefined ? Effect.fail(VersionNotFound) : Effect.succeed(decodeVersion(row))
      )
    )
  })
})

/** Provides the prompts in PostgreSQL. Each read needs at most one statement. */
export const layer: Layer.Layer<PromptRepo, never, Database> = Layer.effect(PromptRepo, makePromptRepo)
