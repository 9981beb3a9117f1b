import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ImportTable } from "./ContentTables.ts"
import type { ImportRow } from "./ImportRows.ts"
import { type FileSection, makeScratchFile } from "./ScratchFile.ts"

/** Rows of one table as a JSON array, for one statement. */
export interface RowBatch {
  readonly table: ImportTable
  readonly json: string
}

/** The limits of one statement, in rows and in characters of JSON. */
const maxBatchRows = 5_000
const maxBatchLength = 4 * 1024 * 1024

/** Maximum size of a spool in memory, in characters of JSON. */
const maxLengthInMemory = 16 * 1024 * 1024

/** A batch that is not full. */
interface OpenBatch {
  readonly rows: Array<string>
  length: number
  /** The number of the table's rows in earlier batches. */
  readonly rowsBefore: number
}

/** Holds the rows of an import until the whole import has been read, so that the database never waits for its source. */
export interface RowSpool {
  /** Adds rows; the order of a table's rows is kept. */
  readonly add: (rows: Iterable<ImportRow>) => Effect.Effect<void>
  /** Runs `use` for every batch in order. Can run more than once. */
  readonly forEachBatch: <E, R>(
    use: (batch: RowBatch) => Effect.Effect<unknown, E, R>
  ) => Effect.Effect<void, E, R>
  /** Returns the length of all rows, in characters of JSON. */
  readonly length: () => number
  /** Returns true if a table has any row. */
  readonly has: (table: ImportTable) => boolean
}

const toJsonArray = (rows: ReadonlyArray<string>): string => `[${rows.join(",")}]`

/** An empty spool. A small import stays in memory; a larger one goes to a scratch file that is deleted with the scope. */
export const makeRowSpool: Effect.Effect<RowSpool, never, Scope.Scope> = Effect.gen(function* () {
  const scratchFile = yield* makeScratchFile
  const openBatches = new Map<ImportTable, OpenBatch>()
  const fullBatches: Array<RowBatch | { readonly table: ImportTable; readonly section: FileSection }> = []
  let length = 0
  let lengthInMemory = 0

  const openBatch = (table: ImportTable, rowsBefore: number): OpenBatch => {
    const batch = { rows: [], length: 0, rowsBefore }
    openBatches.set(table, batch)
    return batch
  }

  /** Stores a full batch and opens the next one of its table. */
  const closeBatch = Effect.fnUntraced(function* (table: ImportTable, { rows, rowsBefore }: OpenBatch) {
    const json = toJsonArray(rows)
    openBatch(table, rowsBefore + rows.length)
    if (lengthInMemory + json.length <= maxLengthInMemory) {
      lengthInMemory += json.length
      fullBatches.push({ table, json })
    } else {
      fullBatches.push({ table, section: yield* scratchFile.append(json) })
    }
  })

  return {
    add: Effect.fnUntraced(function* (rows) {
      for (const { table, path, row } of rows) {
        const batch = openBatches.get(table) ?? openBatch(table, 0)
        const json = JSON.stringify({ ...row, path, place: batch.rowsBefore + batch.rows.length })
        batch.rows.push(json)
        batch.length += json.length
        length += json.length
        if (batch.rows.length === maxBatchRows || batch.length >= maxBatchLength) {
          yield* closeBatch(table, batch)
        }
      }
    }),
    forEachBatch: (use) =>
      Effect.gen(function* () {
        for (const batch of fullBatches) {
          const json = "json" in batch ? batch.json : yield* scratchFile.read(batch.section)
          yield* use({ table: batch.table, json })
        }
        for (const [table, { rows }] of openBatches) {
          if (rows.length > 0) yield* use({ table, json: toJsonArray(rows) })
        }
      }),
    length: () => length,
    has: (table) => openBatches.has(table)
  }
})
