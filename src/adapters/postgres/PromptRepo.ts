// Compiles schemas to functions at their first use, here and in the HTTP adapter: a row or an answer takes a third of
// the time. Where code must not be made of strings, they are interpreted.
import "effect/schema/SchemaJITCompiler/enable"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Schema from "effect/Schema"
import { largeWork } from "../../application/LargeWork.ts"
import { PromptRepo } from "../../application/PromptRepo.ts"
import { spanned } from "../../application/Spans.ts"
import { JsonText } from "../../domain/Bindings.ts"
import { parseJson } from "../../domain/Json.ts"
import type { Slice } from "../../domain/Page.ts"
import {
  Prompt,
  type PromptId,
  PromptNotFound,
  PromptSummary,
  type WorkspaceId
} from "../../domain/Prompt.ts"
import { type ResolutionSource, ResolvedTooLarge } from "../../domain/Resolution.ts"
import { Version, VersionNotFound, VersionSummary } from "../../domain/Version.ts"
import { readEach } from "./Batch.ts"
import { Database, type Row, type Statement } from "./Database.ts"
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
  overrides: Schema.Array(Schema.String)
})
/** The most code units of overrides that are parsed at once. */
const maxParsedOverrides = 16 * 1024

const overridesOf = (text: string): unknown =>
  text.length > maxParsedOverrides ? new JsonText(text) : parseJson(text)

const decodeSource = Schema.decodeUnknownSync(Source)

const sourceOf = (
  id: PromptId,
  row: Row | undefined
): Effect.Effect<ResolutionSource, PromptNotFound | ResolvedTooLarge> => {
  if (row === undefined) return Effect.fail(PromptNotFound)
  if (row.too_large === true) return Effect.fail(ResolvedTooLarge(id))
  const { contents, overrides, ...source } = decodeSource(row)
  return Effect.succeed({
    ...source,
    fragments: contents.map((content, index) => ({
      content,
      variable_overrides: overridesOf(overrides[index]!)
    }))
  })
}

/** A text that PostgreSQL can't hold, so that no tag has it as its name. */
const cannotBe = (text: string): boolean => text.includes("\0") || !text.isWellFormed()

const promptRepo = Effect.gen(function* () {
  const { read, readLarge } = yield* Database
  /** The row, read alone and in the workspace's turn if it is too large to be sent among others. */
  const whole = (workspace: WorkspaceId, row: Row | undefined, statement: () => Statement) =>
    row === undefined || row.id !== null || row.too_large === true
      ? Effect.succeed(row)
      : Effect.map(largeWork.read(workspace, readLarge(statement())), ([row]) => row)
  // What is slow in one workspace keeps no other waiting.
  const byWorkspace = ({ workspace }: queries.OwnPrompt) => workspace
  const getPrompt = yield* readEach(read, queries.getPrompts, byWorkspace)
  const getSource = yield* readEach(read, queries.getSources, byWorkspace)
  return PromptRepo.of({
    list: spanned("PromptRepo.list")((workspace, filter, page, total) => {
      if (filter.tag !== undefined && cannotBe(filter.tag))
        return Effect.succeed({ items: [], total: total ?? 0 })
      return total === undefined
        ? Effect.map(read(queries.listPrompts(workspace, filter, page)), prompts)
        : Effect.map(read(queries.pageOfPrompts(workspace, filter, page)), (rows) => ({
            items: prompts(rows).items,
            total
          }))
    }),
    get: spanned("PromptRepo.get")((workspace, id) =>
      getPrompt({ workspace, id }).pipe(
        Effect.flatMap((row) =>
          whole(workspace, row, () => queries.getPrompts([{ workspace, id }], queries.unbounded))
        ),
        Effect.flatMap((row) =>
          row === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(prompt(row))
        )
      )
    ),
    getSource: spanned("PromptRepo.getSource")((workspace, id) =>
      getSource({ workspace, id }).pipe(
        Effect.flatMap((row) =>
          whole(workspace, row, () => queries.getSources([{ workspace, id }], queries.unbounded))
        ),
        Effect.flatMap((row) => sourceOf(id, row))
      )
    ),
    listVersions: spanned("PromptRepo.listVersions")((workspace, id, oldest, page) =>
      Effect.flatMap(read(queries.listVersions(workspace, id, oldest, page)), (rows) =>
        rows.length === 0 ? Effect.fail(PromptNotFound) : Effect.succeed(versions(rows))
      )
    ),
    getVersion: spanned("PromptRepo.getVersion")((workspace, id, number, oldest) =>
      read(queries.getVersion(workspace, id, number, oldest)).pipe(
        Effect.flatMap(([row]) =>
          whole(workspace, row, () => queries.getVersion(workspace, id, number, oldest, queries.unbounded))
        ),
        Effect.flatMap((row) =>
          row === undefined ? Effect.fail(VersionNotFound) : Effect.succeed(version(row))
        )
      )
    )
  })
})

/** The prompts in PostgreSQL: one statement for a read, and a second one for what is large. */
export const layer: Layer.Layer<PromptRepo, never, Database> = Layer.effect(PromptRepo, promptRepo)
