import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import type { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import type { ExportPart } from "../../../../domain/workspace/WorkspaceParts.ts"
import type { PromptId } from "../../../../domain/Prompt.ts"
import {
  exceedsPage,
  forEachChildPage,
  forEachPage,
  readChildren,
  readChildSizes,
  readTags,
  splitIntoPages,
  toIds
} from "./ContentPages.ts"
import { readWorkspace } from "./ContentReader.ts"
import * as queries from "./ExportQueries.ts"

/** Receives the parts of an archive in their order. */
type Sink<E> = (parts: ReadonlyArray<ExportPart>) => Effect.Effect<void, E>

/** A prompt to export. */
interface SizedPrompt {
  readonly id: PromptId
  readonly part: ExportPart
  /** The size of the prompt's bindings and versions. */
  readonly bytes: number
}

type ItemOf<List extends ExportPart["list"]> = Extract<ExportPart, { readonly list: List }>["item"]

const toBindingPart = (item: ItemOf<"prompt_fragments">): ExportPart => ({ list: "prompt_fragments", item })
const toVersionPart = (item: ItemOf<"prompt_versions">): ExportPart => ({ list: "prompt_versions", item })

/** Exports a prompt whose bindings and versions are too large to be read at once. */
const exportLargePrompt = Effect.fnUntraced(function* <E>(
  sql: PgClient,
  workspace: WorkspaceId,
  { id, part }: SizedPrompt,
  sink: Sink<E>
) {
  yield* sink([part])
  yield* forEachChildPage(sql, workspace, id, queries.promptFragments, (items) =>
    sink(items.map(toBindingPart))
  )
  yield* forEachChildPage(sql, workspace, id, queries.versions, (items) => sink(items.map(toVersionPart)))
})

const exportSmallPrompts = Effect.fnUntraced(function* <E>(
  sql: PgClient,
  workspace: WorkspaceId,
  prompts: ReadonlyArray<SizedPrompt>,
  sink: Sink<E>
) {
  const promptFragments = yield* readChildren(sql, workspace, queries.promptFragments, toIds(prompts))
  const versions = yield* readChildren(sql, workspace, queries.versions, toIds(prompts))
  yield* sink(
    prompts.flatMap(({ id, part }) => [
      part,
      ...promptFragments(id).map(toBindingPart),
      ...versions(id).map(toVersionPart)
    ])
  )
})

const exportPrompts = Effect.fnUntraced(function* <E>(
  sql: PgClient,
  workspace: WorkspaceId,
  rows: ReadonlyArray<queries.ExportedPromptRow>,
  sink: Sink<E>
) {
  const tags = yield* readTags(sql, workspace, toIds(rows))
  const bindingBytes = yield* readChildSizes(sql, queries.promptFragments, toIds(rows))
  const versionBytes = yield* readChildSizes(sql, queries.versions, toIds(rows))
  const prompts = rows.map(
    (row): SizedPrompt => ({
      id: row.id,
      part: { list: "prompts", item: { ...row, tags: tags(row.id) } },
      bytes: bindingBytes(row.id) + versionBytes(row.id)
    })
  )
  for (const page of splitIntoPages(prompts)) {
    const large = page.find(({ bytes }) => exceedsPage(bytes))
    yield* large === undefined
      ? exportSmallPrompts(sql, workspace, page, sink)
      : exportLargePrompt(sql, workspace, large, sink)
  }
})

/**
 * Passes a workspace to `sink`, part by part in the order of an archive: lists by id, versions by number, fragment
 * bindings by position. Runs in a transaction with one snapshot.
 */
export const exportWorkspace = Effect.fnUntraced(function* <E>(
  sql: PgClient,
  workspace: WorkspaceId,
  sink: Sink<E>
) {
  yield* sink([{ list: "workspace", item: yield* readWorkspace(sql, workspace) }])
  yield* forEachPage(sql, workspace, queries.users, (rows) =>
    sink(rows.map((item) => ({ list: "users", item })))
  )
  yield* forEachPage(sql, workspace, queries.keys, (rows) =>
    sink(rows.map((item) => ({ list: "api_keys", item })))
  )
  yield* forEachPage(sql, workspace, queries.folders, (rows) =>
    sink(rows.map((item) => ({ list: "folders", item })))
  )
  yield* forEachPage(sql, workspace, queries.tags, (rows) =>
    sink(rows.map((item) => ({ list: "tags", item })))
  )
  yield* forEachPage(sql, workspace, queries.fragments, (rows) =>
    sink(rows.map((item) => ({ list: "fragments", item })))
  )
  yield* forEachPage(sql, workspace, queries.prompts, (rows) => exportPrompts(sql, workspace, rows, sink))
})
