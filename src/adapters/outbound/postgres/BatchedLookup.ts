import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { Query, Row, Statement } from "./Database.ts"

/** How many are asked for in one statement. With more, PostgreSQL and this process would wait for each other. */
const maxBatch = 16

/** The row of one key, asked for by whoever waits for `answer`. */
interface Asked<Key> {
  readonly key: Key
  readonly answer: (exit: Exit.Exit<Row | undefined, Unavailable>) => void
  hasLeft: boolean
}

/**
 * Reads one row by its key, together with what else is asked for in the same turn of the event loop: a statement costs
 * PostgreSQL and this process more than a row does. `statementOf` gives the statement for some keys: at most a row for
 * each, whose `n` is the key's place among them, from 1. What fails or is slow, is so for a whole statement: so only
 * keys of the same `groupOf` share one.
 *
 * Effect's RequestResolver does the same, but what its sets have held lives until the next whole garbage collection:
 * the pauses of the small ones were six times as long.
 */
export const makeBatchedLookup = <Key>(
  read: Query,
  statementOf: (keys: ReadonlyArray<Key>) => Statement,
  groupOf: (key: Key) => string
): Effect.Effect<(key: Key) => Effect.Effect<Row | undefined, Unavailable>> =>
  Effect.map(Effect.context<never>(), (context) => {
    const fork = Effect.runForkWith(context)
    let batches = new Map<string, Array<Asked<Key>>>()

    const send = (batch: ReadonlyArray<Asked<Key>>): void => {
      const asked = batch.filter(({ hasLeft }) => !hasLeft)
      if (asked.length === 0) return
      fork(read(statementOf(asked.map(({ key }) => key)))).addObserver((exit) => {
        if (Exit.isFailure(exit)) {
          const failure = Exit.failCause(exit.cause)
          for (const { answer } of asked) answer(failure)
          return
        }
        const found: Array<Row | undefined> = []
        for (const row of exit.value) found[(row.n as number) - 1] = row
        for (const [index, { answer }] of asked.entries()) answer(Exit.succeed(found[index]))
      })
    }

    const sendAll = (): void => {
      const all = batches
      batches = new Map()
      for (const batch of all.values()) send(batch)
    }

    const batchOf = (group: string): Array<Asked<Key>> => {
      const known = batches.get(group)
      if (known !== undefined) return known
      if (batches.size === 0) setImmediate(sendAll)
      const batch: Array<Asked<Key>> = []
      batches.set(group, batch)
      return batch
    }

    return (key) =>
      Effect.callback((answer) => {
        const asked: Asked<Key> = { key, answer, hasLeft: false }
        const group = groupOf(key)
        const batch = batchOf(group)
        if (batch.push(asked) === maxBatch) {
          batches.delete(group)
          send(batch)
        }
        return Effect.sync(() => {
          asked.hasLeft = true
        })
      })
  })
