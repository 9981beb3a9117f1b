import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Request from "effect/Request"
import * as RequestResolver from "effect/RequestResolver"
import type { Unavailable } from "../../application/Unavailable.ts"
import type { Read, Row, Statement } from "./Database.ts"

/** How many are asked for in one statement. With more, PostgreSQL and this process would wait for each other. */
const maxBatch = 16

interface RowOf<Key> extends Request.Request<Row | undefined, Unavailable> {
  readonly key: Key
}

/**
 * Reads one row by its key, together with whatever else is asked for in the same turn of the event loop: a statement
 * costs PostgreSQL and this process more than a row does. `statementOf` gives the statement for some keys: at most a
 * row for each, whose `n` is the key's place among them, from 1.
 */
export const readEach = <Key>(
  read: Read,
  statementOf: (keys: ReadonlyArray<Key>) => Statement
): ((key: Key) => Effect.Effect<Row | undefined, Unavailable>) => {
  const request = Request.of<RowOf<Key>>()
  const resolver = RequestResolver.make<RowOf<Key>>((entries) =>
    Effect.map(read(statementOf(entries.map((entry) => entry.request.key))), (rows) => {
      const found: Array<Row | undefined> = []
      for (const row of rows) found[(row.n as number) - 1] = row
      for (const [index, entry] of entries.entries()) entry.completeUnsafe(Exit.succeed(found[index]))
    })
  ).pipe(RequestResolver.batchN(maxBatch))
  return (key) => Effect.request(request({ key }), resolver)
}
