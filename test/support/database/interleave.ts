import * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Arbitrary from "effect/Arbitrary"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"

export const isolations = ["read committed", "repeatable read", "serializable"] as const

/** The statements of two sessions, and the order in which the sessions send them. */
interface Interleaving {
  readonly sessions: ReadonlyArray<ReadonlyArray<string>>
  readonly order: ReadonlyArray<number>
}

type Sessions = readonly [PgConnection.PgConnection, PgConnection.PgConnection]

/** Generates two sessions with one or two transactions each, which consist of the given writes. */
export const makeInterleavings = (writes: ReadonlyArray<string>): Arbitrary.Arbitrary<Interleaving> => {
  const Transaction = Schema.Struct({
    isolation: Schema.Literals(isolations),
    writes: Schema.Array(
      Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: writes.length - 1 }))
    ).check(Schema.isMinLength(1), Schema.isMaxLength(3)),
    end: Schema.Literals(["commit", "rollback"])
  })
  const Session = Schema.Array(Transaction).check(Schema.isMinLength(1), Schema.isMaxLength(2))
  const Order = Schema.Array(Schema.Literals([0, 1])).check(Schema.isMinLength(4), Schema.isMaxLength(12))
  const toStatements = (transactions: typeof Session.Type): Array<string> =>
    transactions.flatMap(({ isolation, writes: indices, end }) => [
      // The first statement takes the snapshot.
      `begin isolation level ${isolation}; select from workspaces`,
      ...indices.map((index) => writes[index]!),
      end
    ])
  return Arbitrary.map(
    Arbitrary.schema(Schema.Struct({ sessions: Schema.Tuple([Session, Session]), order: Order })),
    ({ sessions, order }) => ({ sessions: sessions.map(toStatements), order })
  )
}

/**
 * Sends the statements in order. While one session waits for a lock, the other session continues. Runs `afterEach` after
 * each statement.
 */
export const interleave = Effect.fnUntraced(function* <E = never>(
  connections: Sessions,
  { sessions, order }: Interleaving,
  afterEach: Effect.Effect<void, E> = Effect.void
) {
  const left = sessions.map((statements) => [...statements])
  const running: Array<Fiber.Fiber<unknown>> = []
  const waits = (session: number) =>
    running[session] !== undefined && running[session].pollUnsafe() === undefined
  for (let turn = 0; left.some(({ length }) => length > 0); turn++) {
    const preferred = order[turn] ?? turn % 2
    const session = [preferred, 1 - preferred].find((index) => left[index]!.length > 0 && !waits(index))
    if (session !== undefined) {
      const statement = left[session]!.shift()!
      // Ignores expected errors: conflicts, violations of constraints, and statements after an error in the transaction.
      running[session] = yield* Effect.forkChild(
        Effect.forEach(statement.split("; "), (text) => Effect.exit(connections[session]!.query(text, []))),
        { startImmediately: true }
      )
      for (let polls = 0; waits(session) && polls < 10; polls++) yield* Effect.sleep("1 millis")
      yield* afterEach
    } else yield* Effect.sleep("2 millis")
  }
  for (const fiber of running) yield* Fiber.await(fiber)
})

const connect = Effect.flatMap(PgClient.PgClient, (client) => PgConnection.make(client.config))

/** Opens two sessions that detect a deadlock quickly. */
export const openSessions = Effect.gen(function* () {
  const sessions = [yield* connect, yield* connect] as const
  for (const session of sessions) {
    yield* session.query("set deadlock_timeout = '20ms'", [])
    yield* session.query("set lock_timeout = '5s'", [])
  }
  return sessions
})
