import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LargeReadPolicy, LargeReadDeferred } from "../../../application/LargeReadPolicy.ts"
import { largeReadQueue } from "./LargeReadQueue.ts"
import { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import { withSpanIfTraced } from "../../../application/Spans.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import { type PromptId, PromptNotFound } from "../../../domain/Prompt.ts"
import { type ResolutionSource, ResolvedTooLarge } from "../../../domain/Resolution.ts"
import { VersionNotFound } from "../../../domain/Version.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { makeBatchedLookup } from "./BatchedLookup.ts"
import type { Row, Statement } from "./connection/Query.ts"
import { Database } from "./Database.ts"
import * as queries from "./PromptQueries.ts"
import * as rows from "./PromptRows.ts"

/** Returns true for a text that PostgreSQL cannot store, so that no tag can have it as its name. */
const isUnstorable = (text: string): boolean => text.includes("\0") || !text.isWellFormed()

/** A row of nulls stands for a row that is too large. */
const isRowWithheld = (row: Row | undefined): boolean =>
  row !== undefined && row.id === null && row.too_large !== true

/** A page whose rows are together too large comes without them. */
const isPageWithheld = (rows: ReadonlyArray<Row>): boolean => rows[0]?.fits === false

const toSource = (
  id: PromptId,
  row: Row | undefined
): Effect.Effect<ResolutionSource, PromptNotFound | ResolvedTooLarge> => {
  if (row === undefined) return Effect.fail(PromptNotFound)
  return row.too_large === true ? Effect.fail(ResolvedTooLarge(id)) : Effect.succeed(rows.decodeSource(row))
}

const makePromptRepo = Effect.gen(function* () {
  const { queryPrompts, queryLargePrompts } = yield* Database

  /**
   * Runs `query`. If it leaves out large rows, or if large rows are expected, treats them as the caller's policy says.
   * Large rows are read separately, in their workspace's turn.
   */
  const withLargeReads = <A, E>(
    workspace: WorkspaceId,
    query: Effect.Effect<A, E>,
    isWithheld: (result: A) => boolean,
    readLarge: Effect.Effect<A, E>
  ): Effect.Effect<A, E | Unavailable> =>
    Effect.flatMap(LargeReadPolicy, (policy) => {
      const read = largeReadQueue.read(workspace, readLarge)
      return policy === "expect"
        ? read
        : Effect.flatMap(query, (result) => {
            if (!isWithheld(result)) return Effect.succeed(result)
            return policy === "defer" ? Effect.die(new LargeReadDeferred()) : read
          })
    })

  const readRow = (
    workspace: WorkspaceId,
    query: Effect.Effect<Row | undefined, Unavailable>,
    makeStatement: () => Statement
  ) =>
    withLargeReads(
      workspace,
      query,
      isRowWithheld,
      Effect.suspend(() => Effect.map(queryLargePrompts(makeStatement()), ([row]) => row))
    )

  /** Reads a page. A page of more than `maxPageBytes` is a defect. */
  const readPage = (workspace: WorkspaceId, makeStatement: (maxBytes?: number) => Statement) =>
    withLargeReads(
      workspace,
      Effect.suspend(() => queryPrompts(makeStatement())),
      isPageWithheld,
      Effect.suspend(() =>
        Effect.flatMap(queryLargePrompts(makeStatement(queries.maxPageBytes)), (rows) =>
          isPageWithheld(rows)
            ? Effect.die(
                new Error(
                  `A page has more than ${queries.maxPageBytes / 2 ** 20} MiB: ask for fewer items per page`
                )
              )
            : Effect.succeed(rows)
        )
      )
    )

  // A slow statement of one workspace must not delay the others.
  const partitionKey = ({ workspace }: queries.PromptKey) => workspace
  const getPromptRow = yield* makeBatchedLookup(queryPrompts, queries.getPrompts, partitionKey)
  const getSourceRow = yield* makeBatchedLookup(queryPrompts, queries.getSources, partitionKey)

  return PromptRepo.of({
    list: withSpanIfTraced("PromptRepo.list")((workspace, filter, page) =>
      filter.tag !== undefined && isUnstorable(filter.tag)
        ? Effect.succeed({ items: [], total: 0 })
        : Effect.map(
            readPage(workspace, (maxBytes) => queries.listPrompts(workspace, filter, page, maxBytes)),
            rows.decodePromptList
          )
    ),
    listPage: withSpanIfTraced("PromptRepo.listPage")((workspace, filter, page) =>
      filter.tag !== undefined && isUnstorable(filter.tag)
        ? Effect.succeed([])
        : Effect.map(
            readPage(workspace, (maxBytes) => queries.listPromptPage(workspace, filter, page, maxBytes)),
            rows.decodePromptPage
          )
    ),
    get: withSpanIfTraced("PromptRepo.get")((workspace, id) =>
      readRow(workspace, getPromptRow({ workspace, id }), () =>
        queries.getPrompts([{ workspace, id }], queries.unbounded)
      ).pipe(
        Effect.flatMap((row) =>
          row === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(rows.decodePrompt(row))
        )
      )
    ),
    getSource: withSpanIfTraced("PromptRepo.getSource")((workspace, id) =>
      readRow(workspace, getSourceRow({ workspace, id }), () =>
        queries.getSources([{ workspace, id }], queries.unbounded)
      ).pipe(Effect.flatMap((row) => toSource(id, row)))
    ),
    listVersions: withSpanIfTraced("PromptRepo.listVersions")((workspace, id, oldest, page) =>
      Effect.flatMap(
        readPage(workspace, (maxBytes) => queries.listVersions(workspace, id, oldest, page, maxBytes)),
        (found) =>
          found.length === 0 ? Effect.fail(PromptNotFound) : Effect.succeed(rows.decodeVersionList(found))
      )
    ),
    getVersion: withSpanIfTraced("PromptRepo.getVersion")((workspace, id, number, oldest) =>
      readRow(
        workspace,
        Effect.map(queryPrompts(queries.getVersion(workspace, id, number, oldest)), ([row]) => row),
        () => queries.getVersion(workspace, id, number, oldest, queries.unbounded)
      ).pipe(
        Effect.flatMap((row) =>
          row === undefined ? Effect.fail(VersionNotFound) : Effect.succeed(rows.decodeVersion(row))
        )
      )
    )
  })
})

/** The prompts in PostgreSQL. A read takes one statement, and a second one if its rows are large. */
export const layer: Layer.Layer<PromptRepo, never, Database> = Layer.effect(PromptRepo, makePromptRepo)
