import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { EncodedTexts } from "../connection/EncodedTexts.ts"
import { type ImportTable, spooledColumns } from "./ContentTables.ts"
import type { ImportRow } from "./ImportRows.ts"
import { type FileSection, makeTemporaryFile } from "./TemporaryFile.ts"
import { TextArrayWriter } from "./TextArrayWriter.ts"

/** Rows of one table, for one statement. */
export interface RowBatch {
  /** The columns of `spooledColumns`, each with its values as PostgreSQL reads them from text. */
  readonly columns: ReadonlyArray<EncodedTexts>
  /** The number of the table's rows in earlier batches. */
  readonly rowsBefore: number
}

/**
 * The size of a full batch, in bytes. PostgreSQL keeps the rows of a statement for triggers and foreign keys, and
 * writes them to files if they are more than a few megabytes.
 */
const fullBatchBytes = 1024 * 1024

/** Maximum size of a spool in memory, in bytes. */
const maxBytesInMemory = 16 * 1024 * 1024

/** The rows of a table that are in no full batch. */
interface OpenBatch {
  readonly columns: ReadonlyArray<Column>
  rowsBefore: number
  rows: number
  bytes: number
}

interface Column {
  readonly name: string
  readonly values: TextArrayWriter
}

/** A full batch: its columns one after the other, in memory or in the temporary file. */
interface FullBatch {
  readonly lengths: ReadonlyArray<number>
  readonly rowsBefore: number
  readonly content: Uint8Array | FileSection
}

/** Holds the rows of an import until the whole import has been read, so that the database never waits for its source. */
export interface RowSpool {
  /** Adds rows; the order of a table's rows is kept. */
  readonly add: (rows: Iterable<ImportRow>) => Effect.Effect<void>
  /** Runs `use` for every batch of a table in order. Can run more than once. */
  readonly forEachBatch: <E, R>(
    table: ImportTable,
    use: (batch: RowBatch) => Effect.Effect<unknown, E, R>
  ) => Effect.Effect<void, E, R>
  /** Returns the size of the rows of some tables in bytes. */
  readonly countBytes: (tables: ReadonlyArray<ImportTable>) => number
  /** Returns true if a table has any row. */
  readonly has: (table: ImportTable) => boolean
}

/** Converts a value to the text that PostgreSQL reads. */
const toText = (value: unknown): string | null => {
  if (typeof value === "string") return value
  if (value === null || value === undefined) return null
  return typeof value === "object" ? JSON.stringify(value) : String(value)
}

/** Splits the content of a batch into its columns. */
const toColumns = (content: Uint8Array, lengths: ReadonlyArray<number>): ReadonlyArray<EncodedTexts> => {
  let start = 0
  return lengths.map((length) => {
    const column = new EncodedTexts(content.subarray(start, start + length))
    start += length
    return column
  })
}

/**
 * An empty spool. A small import stays in memory; a larger one goes to a temporary file that is deleted with the
 * scope.
 */
export const makeRowSpool: Effect.Effect<RowSpool, never, Scope.Scope> = Effect.gen(function* () {
  const temporaryFile = yield* makeTemporaryFile
  const openBatches = new Map<ImportTable, OpenBatch>()
  const fullBatches = new Map<ImportTable, Array<FullBatch>>()
  let bytesInMemory = 0

  const getOpenBatch = (table: ImportTable): OpenBatch => {
    const existing = openBatches.get(table)
    if (existing !== undefined) return existing
    const columns = spooledColumns(table).map((name) => ({ name, values: new TextArrayWriter() }))
    const batch: OpenBatch = { columns, rowsBefore: 0, rows: 0, bytes: 0 }
    openBatches.set(table, batch)
    return batch
  }

  /** Stores a full batch and empties it for the next rows of its table. */
  const closeBatch = Effect.fnUntraced(function* (table: ImportTable, batch: OpenBatch) {
    const { rowsBefore, columns } = batch
    const arrays = columns.map(({ values }) => values.read())
    const lengths = arrays.map(({ length }) => length)
    const isInMemory = bytesInMemory + batch.bytes <= maxBytesInMemory
    const content = isInMemory ? Buffer.concat(arrays) : yield* temporaryFile.append(arrays)
    const batches = fullBatches.get(table) ?? []
    fullBatches.set(table, batches)
    batches.push({ lengths, rowsBefore, content })
    if (isInMemory) bytesInMemory += batch.bytes
    for (const { values } of columns) values.clear()
    batch.rowsBefore += batch.rows
    batch.rows = 0
    batch.bytes = 0
  })

  return {
    add: Effect.fnUntraced(function* (rows) {
      for (const { table, path, row } of rows) {
        const batch = getOpenBatch(table)
        for (const { name, values } of batch.columns)
          batch.bytes += values.add(name === "path" ? path : toText(row[name as keyof typeof row]))
        batch.rows++
        if (batch.bytes >= fullBatchBytes) yield* closeBatch(table, batch)
      }
    }),
    forEachBatch: Effect.fnUntraced(function* (table, use) {
      for (const { lengths, rowsBefore, content } of fullBatches.get(table) ?? []) {
        const bytes = "position" in content ? yield* temporaryFile.read(content) : content
        yield* use({ columns: toColumns(bytes, lengths), rowsBefore })
      }
      const last = openBatches.get(table)
      if (last === undefined || last.rows === 0) return
      const columns = last.columns.map(({ values }) => new EncodedTexts(values.read()))
      yield* use({ columns, rowsBefore: last.rowsBefore })
    }),
    countBytes: (tables) => {
      let bytes = 0
      for (const table of tables) {
        for (const { lengths } of fullBatches.get(table) ?? []) for (const length of lengths) bytes += length
        bytes += openBatches.get(table)?.bytes ?? 0
      }
      return bytes
    },
    has: (table) => openBatches.has(table)
  }
})
