import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LargeReadPolicy, LargeReadDeferred } from "../../../application/LargeReadPolicy.ts"
import { largeReadQueue } from "./LargeReadQueue.ts"
import { type PromptFilter, PromptRepo } from "../../../application/ports/PromptRepo.ts"
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

/** Returns false for a tag that no prompt can have, because PostgreSQL cannot store its name. */
const canMatch = ({ tag }: PromptFilter): boolean =>
  tag === undefined || (!tag.includes("\0") && tag.isWellFormed())

/** A row of nulls stands for a row that is too large. */
const isRowWithheld = (row: Row | undefined): boolean => row !== undefined && row.id === null

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
   * Runs `query`. If it leaves out large rows, or if large rows are expected, treats them as the caller's policy
   * says. Large rows are read separately, in their workspace's turn.
   */
  const readByPolicy = <A, E>(
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
    readByPolicy(
      workspace,
      query,
      isRowWithheld,
      Effect.suspend(() => Effect.map(queryLargePrompts(makeStatement()), ([row]) => row))
    )

  /** Reads a page. A page of more than `maxPageBytes` is a defect. */
  const readPage = (workspace: WorkspaceId, makeStatement: (maxBytes?: number) => Statement) =>
    readByPolicy(
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
  const getPromptRow = yield* makeBatchedLookup(queryPrompts, queries.selectPromptsByKey, partitionKey)
  const getSourceRow = yield* makeBatchedLookup(queryPrompts, queries.selectSources, partitionKey)

  return PromptRepo.of({
    list: withSpanIfTraced("PromptRepo.list")((workspace, filter, page) =>
      canMatch(filter)
        ? Effect.map(
            readPage(workspace, (maxBytes) => queries.selectPrompts(workspace, filter, page, maxBytes)),
            rows.decodePromptList
          )
        : Effect.succeed({ items: [], total: 0 })
    ),
    listPage: withSpanIfTraced("PromptRepo.listPage")((workspace, filter, page) =>
      canMatch(filter)
        ? Effect.map(
            readPage(workspace, (maxBytes) => queries.selectPromptPage(workspace, filter, page, maxBytes)),
            rows.decodePromptPage
          )
        : Effect.succeed([])
    ),
    get: withSpanIfTraced("PromptRepo.get")((workspace, id) =>
      readRow(workspace, getPromptRow({ workspace, id }), () =>
        queries.selectPromptsByKey([{ workspace, id }], queries.unbounded)
      ).pipe(
        Effect.flatMap((row) =>
          row === undefined ? Effect.fail(PromptNotFound) : Effect.succeed(rows.decodePrompt(row))
        )
      )
    ),
    getSource: withSpanIfTraced("PromptRepo.getSource")((workspace, id) =>
      readRow(workspace, getSourceRow({ workspace, id }), () =>
        queries.selectLargeSource({ workspace, id })
      ).pipe(Effect.flatMap((row) => toSource(id, row)))
    ),
    listVersions: withSpanIfTraced("PromptRepo.listVersions")((workspace, id, oldest, page) =>
      Effect.flatMap(
        readPage(workspace, (maxBytes) => queries.selectVersions(workspace, id, oldest, page, maxBytes)),
        (found) =>
          found.length === 0 ? Effect.fail(PromptNotFound) : Effect.succeed(rows.decodeVersionList(found))
      )
    ),
    getVersion: withSpanIfTraced("PromptRepo.getVersion")((workspace, id, number, oldest) =>
      readRow(
        workspace,
        Effect.map(queryPrompts(queries.selectVersion(workspace, id, number, oldest)), ([row]) => row),
        () => queries.selectVersion(workspace, id, number, oldest, queries.unbounded)
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
