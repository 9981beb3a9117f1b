import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Schema from "effect/Schema"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import type { Query, Row, Statement } from "./Query.ts"

/** Maximum number of keys of a statement. With more keys, PostgreSQL and this process would not work in parallel. */
const maxBatchSize = 16

interface PendingLookup<Key> {
  readonly key: Key
  readonly resume: (exit: Exit.Exit<Row | undefined, Unavailable>) => void
  isCanceled: boolean
  /** Runs when the caller is interrupted. Interrupts the statement if no other caller waits for it. */
  onCancel: () => void
}

const decodeRow = Schema.decodeUnknownSync(Schema.Struct({ ordinal: Schema.Int }))

/** Returns the column `ordinal` of a row. */
export const decodeOrdinal = (row: Row): number => decodeRow(row).ordinal

/**
 * Returns a function that reads one row by its key. A key is looked up immediately if no statement of its partition is
 * in flight. Otherwise, up to `maxBatchSize` keys of the partition that are requested in the same turn of the event
 * loop share a statement. This saves work, because an additional statement costs PostgreSQL and this process more than
 * an additional row.
 *
 * Does not use Effect's `RequestResolver`, because its sets keep completed requests alive until the next full garbage
 * collection. This made the pauses of minor collections six times as long.
 *
 * @param makeStatement makes the statement for some keys. The statement returns at most one row per key. The column
 * `ordinal` of a row is the position of its key, counted from 1.
 * @param partitionKey returns the partition of a key. Only keys of the same partition share a statement, because a
 * failure or a delay of a statement affects all its keys.
 */
export const makeBatchedLookup = <Key>(
  query: Query,
  makeStatement: (keys: ReadonlyArray<Key>) => Statement,
  partitionKey: (key: Key) => string
): Effect.Effect<(key: Key) => Effect.Effect<Row | undefined, Unavailable>> =>
  Effect.map(Effect.context<never>(), (context) => {
    const fork = Effect.runForkWith(context)
    let batches = new Map<string, Array<PendingLookup<Key>>>()
    /** The number of statements in flight, by partition. */
    const inFlight = new Map<string, number>()

    const countInFlight = (partition: string, change: 1 | -1): void => {
      const count = (inFlight.get(partition) ?? 0) + change
      if (count === 0) inFlight.delete(partition)
      else inFlight.set(partition, count)
    }

    const send = (partition: string, batch: ReadonlyArray<PendingLookup<Key>>): void => {
      const lookups = batch.filter(({ isCanceled }) => !isCanceled)
      if (lookups.length === 0) return
      const rowsByOrdinal = Effect.map(query(makeStatement(lookups.map(({ key }) => key))), (rows) => {
        const found: Array<Row | undefined> = []
        for (const row of rows) found[decodeOrdinal(row)] = row
        return found
      })
      countInFlight(partition, 1)
      const running = fork(rowsByOrdinal)
      for (const lookup of lookups) {
        lookup.onCancel = () => {
          if (lookups.every(({ isCanceled }) => isCanceled)) running.interruptUnsafe()
        }
      }
      running.addObserver((exit) => {
        countInFlight(partition, -1)
        for (const [index, { resume }] of lookups.entries()) {
          resume(Exit.map(exit, (found) => found[index + 1]))
        }
      })
    }

    const sendAll = (): void => {
      const all = batches
      batches = new Map()
      for (const [partition, batch] of all) send(partition, batch)
    }

    const getBatch = (partition: string): Array<PendingLookup<Key>> => {
      const open = batches.get(partition)
      if (open !== undefined) return open
      if (batches.size === 0) setImmediate(sendAll)
      const batch: Array<PendingLookup<Key>> = []
      batches.set(partition, batch)
      return batch
    }

    return (key) =>
      Effect.callback((resume) => {
        const lookup: PendingLookup<Key> = { key, resume, isCanceled: false, onCancel: () => {} }
        const partition = partitionKey(key)
        if (!inFlight.has(partition)) send(partition, [lookup])
        else {
          const batch = getBatch(partition)
          if (batch.push(lookup) === maxBatchSize) {
            batches.delete(partition)
            send(partition, batch)
          }
        }
        return Effect.sync(() => {
          lookup.isCanceled = true
          lookup.onCancel()
        })
      })
  })
