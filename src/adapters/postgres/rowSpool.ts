import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { ArchiveRow, ArchiveTable } from "./archiveRows.ts"

/** Rows of one table as a JSON array, for one statement. */
export interface RowBatch {
  readonly table: ArchiveTable
  readonly json: string
}

/** The most that one statement inserts, in rows and in characters of JSON. */
const maxBatchRows = 5_000
const maxBatchLength = 4 * 1024 * 1024

/** The most that a spool holds in memory, in characters of JSON. */
const maxLengthInMemory = 16 * 1024 * 1024

interface Pending {
  rows: Array<string>
  length: number
  /** The number of the table's rows in earlier batches. */
  readonly before: number
}

/** Holds the batches of an import until the whole import has been read, so that the database never waits for its source. */
export interface RowSpool {
  /** Adds rows; their order within a table is kept. */
  readonly add: (rows: Iterable<ArchiveRow>) => Effect.Effect<void>
  /** Runs `use` for every batch, in order. Can run more than once. */
  readonly useEach: <E, R>(
    use: (batch: RowBatch) => Effect.Effect<unknown, E, R>
  ) => Effect.Effect<void, E, R>
  /** The characters of all the rows as JSON. */
  readonly length: () => number
  /** Whether a table has any row. */
  readonly has: (table: ArchiveTable) => boolean
}

/** A file without a name, which only this process can read and which disappears with it. */
const openScratchFile = async (): Promise<FileHandle> => {
  const directory = await mkdtemp(join(tmpdir(), "import-"))
  try {
    return await open(join(directory, "rows"), "wx+", 0o600)
  } finally {
    await rm(directory, { recursive: true, force: true })
  }
}

const readAt = async (file: FileHandle, position: number, length: number): Promise<string> => {
  const bytes = Buffer.allocUnsafe(length)
  for (let done = 0; done < length; ) {
    const { bytesRead } = await file.read(bytes, done, length - done, position + done)
    if (bytesRead === 0) throw new Error("The scratch file of the import ended early")
    done += bytesRead
  }
  return bytes.toString()
}

/** An empty spool: small imports stay in memory, larger ones go to a scratch file that is deleted with the scope. */
export const makeRowSpool: Effect.Effect<RowSpool, never, Scope.Scope> = Effect.gen(function* () {
  const pending = new Map<ArchiveTable, Pending>()
  const batches: Array<RowBatch | { readonly table: ArchiveTable; position: number; length: number }> = []
  let total = 0
  let lengthInMemory = 0
  let file: FileHandle | undefined
  let fileLength = 0
  yield* Effect.addFinalizer(() => Effect.promise(async () => file?.close()))

  const keep = (batch: RowBatch): Effect.Effect<void> =>
    Effect.promise(async () => {
      if (lengthInMemory + batch.json.length <= maxLengthInMemory) {
        batches.push(batch)
        lengthInMemory += batch.json.length
        return
      }
      file ??= await openScratchFile()
      const bytes = Buffer.from(batch.json)
      await file.appendFile(bytes)
      batches.push({ table: batch.table, position: fileLength, length: bytes.length })
      fileLength += bytes.length
    })

  const take = (table: ArchiveTable, { rows, before }: Pending): RowBatch => {
    pending.set(table, { rows: [], length: 0, before: before + rows.length })
    return { table, json: `[${rows.join(",")}]` }
  }

  return {
    add: (rows) =>
      Effect.gen(function* () {
        for (const { table, path, row } of rows) {
          let batch = pending.get(table)
          if (batch === undefined) {
            batch = { rows: [], length: 0, before: 0 }
            pending.set(table, batch)
          }
          const json = JSON.stringify({ ...row, path, place: batch.before + batch.rows.length })
          batch.rows.push(json)
          batch.length += json.length
          total += json.length
          if (batch.rows.length === maxBatchRows || batch.length >= maxBatchLength)
            yield* keep(take(table, batch))
        }
      }),
    useEach: (use) =>
      Effect.gen(function* () {
        for (const batch of batches) {
          const whole =
            "json" in batch
              ? batch
              : {
                  table: batch.table,
                  json: yield* Effect.promise(() => readAt(file!, batch.position, batch.length))
                }
          yield* use(whole)
        }
        for (const [table, { rows }] of pending) {
          if (rows.length > 0) yield* use({ table, json: `[${rows.join(",")}]` })
        }
      }),
    length: () => total,
    has: (table) => pending.has(table)
  }
})
