// Compiles schemas to functions at their first use, here and in the HTTP adapter: a row or an answer takes a third of
// the time. Where code must not be made of strings, they are interpreted.
import "effect/schema/SchemaJITCompiler/enable"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { PromptRepo } from "../../application/PromptRepo.ts"
import type { Slice } from "../../domain/Page.ts"
import { Prompt, PromptNotFound, PromptSummary } from "../../domain/Prompt.ts"
import { type ResolutionSource, ResolvedTooLarge } from "../../domain/Resolution.ts"
import { Version, VersionNotFound, VersionSummary } from "../../domain/Version.ts"
import { Database, type Row } from "./Database.ts"
import * as queries from "./PromptQueries.ts"

/** The page's rows; the one row of an empty page holds only the total. A row that does not decode is a defect. */
const sliceOf = <A>(item: Schema.Decoder<A>, isItem: (row: Row) => boolean) => {
  const decode = Schema.decodeUnknownSync(item)
  return (rows: ReadonlyArray<Row>): Slice<A> => ({
    items: rows.filter(isItem).map((row) => decode(row)),
    total: rows[0]?.total as number
  })
}
const prompts = sliceOf(PromptSummary, (row) => row.id !== null)
const versions = sliceOf(VersionSummary, (row) => row.version_number !== null)
const prompt = Schema.decodeUnknownSync(Prompt)
const version = Schema.decodeUnknownSync(Version)

const Source = Schema.Struct({
  id: Prompt.fields.id,
  title: Schema.String,
  prompt_type: Prompt.fields.prompt_type,
  target_model: Schema.String,
  current_content: Schema.String,
  contents: Schema.Array(Schema.String),
  overrides: Schema.Array(Schema.Unknown),
  too_large: Schema.Boolean
})
const decodeSource = Schema.decodeUnknownSync(Source)

const sourceOf = (row: Row): Effect.Effect<ResolutionSource, ResolvedTooLarge> => {
  const { contents, overrides, too_large, ...source } = decodeSource(row)
  if (too_large) return Effect.fail(ResolvedTooLarge(source.id))
  return Effect.succeed({
    ...source,
    fragments: contents.map((content, index) => ({ content, variable_overrides: overrides[index] }))
  })
}

/** A text that PostgreSQL can't hold, so that no tag has it as its name. */
const cannotBe = (text: string): boolean => text.includes("\0") || !text.isWellFormed()

const promptRepo = ({ read }: Database["Service"]): PromptRepo["Service"] => ({
  list: Effect.fn("PromptRepo.list")(function* (workspace, filter, page, total) {
    if (filter.tag !== undefined && cannotBe(filter.tag)) return { items: [], total: total ?? 0 }
    if (total === undefined) return prompts(yield* read(queries.listPrompts(workspace, filter, page)))
    const { items } = prompts(yield* read(queries.pageOfPrompts(workspace, filter, page)))
    return { items, total }
  }),
  get: Effect.fn("PromptRepo.get")(function* (workspace, id) {
    const [row] = yield* read(queries.getPrompt(workspace, id))
    return row === undefined ? yield* Effect.fail(PromptNotFound) : prompt(row)
  }),
  getSource: Effect.fn("PromptRepo.getSource")(function* (workspace, id) {
    const [row] = yield* read(queries.getSource(workspace, id))
    return yield* row === undefined ? Effect.fail(PromptNotFound) : sourceOf(row)
  }),
  listVersions: Effect.fn("PromptRepo.listVersions")(function* (workspace, id, oldest, page) {
    const rows = yield* read(queries.listVersions(workspace, id, oldest, page))
    return rows.length === 0 ? yield* Effect.fail(PromptNotFound) : versions(rows)
  }),
  getVersion: Effect.fn("PromptRepo.getVersion")(function* (workspace, id, number, oldest) {
    const [row] = yield* read(queries.getVersion(workspace, id, number, oldest))
    return row === undefined ? yield* Effect.fail(VersionNotFound) : version(row)
  })
})

/** The prompts in PostgreSQL, each method one statement. */
export const layer: Layer.Layer<PromptRepo, never, Database> = Layer.effect(
  PromptRepo,
  Effect.map(Database, promptRepo)
)
