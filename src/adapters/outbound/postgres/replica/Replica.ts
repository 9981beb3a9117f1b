import type * as PgClient from "@effect/sql-pg/PgClient"
import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Cause from "effect/Cause"
import * as Data from "effect/Data"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Scope from "effect/Scope"
import { isSqlError, type SqlError } from "effect/sql/SqlError"
import { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { makeStateLog } from "../../../../application/StateLog.ts"
import type { Query } from "../connection/Query.ts"
import { makeQuery } from "../connection/QueryPool.ts"
import { checkOwnSession } from "../connection/SessionSetup.ts"
import { describeSqlError, isConnectionLost } from "../connection/SqlErrors.ts"
import { replicaDeadlines } from "../connection/Timeouts.ts"
import type { UnavailableMapper } from "../connection/UnavailableMapper.ts"
import { type Fence, FenceQueue } from "./FenceQueue.ts"
import { makeReplicaGauges } from "./ReplicaMetrics.ts"
import type { ReplicaBudget } from "./ReplicaBudget.ts"
import { makeReplicaSessionSetup } from "./ReplicaSessionSetup.ts"
import { decodeStandby, findLineageProblem, type Lineage, selectStandby } from "./ServerState.ts"
import { WakeableSleep } from "./WakeableSleep.ts"

/** How often the position is queried while no fence waits for it, in milliseconds. */
const idleIntervalMs = 500
/** How often it is queried at most, in milliseconds. */
const minIntervalMs = 10
/** After this long without a response, a replica is out of use, in milliseconds. */
const responseTimeoutMs = 500
/** After this long without a response, a connection counts as lost, in milliseconds. */
const connectionTimeoutMs = 5_000
/** How long a replica waits before it is connected to again, in milliseconds. */
const reconnectDelayMs = 500
const silence = `no response for ${responseTimeoutMs} ms`
/** A replica that is further behind counts as far behind, in milliseconds. */
const farBehindMs = 10_000

/** Numbers the connections to all replicas. */
let lastEpoch = 0

/** The open connections to a replica. */
export interface ReplicaSession {
  /** Grows with each session of any replica. */
  readonly epoch: number
  readonly queryPrompts: Query
  readonly queryKeys: Query
  /** Uses the connections of `queryPrompts`: a statement that a lock blocks for 1 s is repeated on the primary. */
}

/** Where a replica is and how its log lines and metrics name it. */
export interface ReplicaServer {
  readonly name: string
  readonly config: PgClient.PgPoolConfig
}

/** Why a replica cannot be used. */
class ReplicaProblem extends Data.TaggedError("ReplicaProblem")<{ readonly message: string }> {}

/** One standby: follows its position, and offers its pools while it can be used. */
export class Replica {
  readonly name: string
  readonly fences = new FenceQueue()
  readonly #config: PgClient.PgPoolConfig
  readonly #budget: ReplicaBudget
  readonly #onChange: () => void
  readonly #sleep = new WakeableSleep()
  readonly #gauges
  readonly #upLog
  readonly #lagLog
  #session: ReplicaSession | undefined
  #isResponding = false
  #isFarBehind = false
  #primary: Lineage | undefined
  #retire = Deferred.makeUnsafe<void>()

  /** @param onChange called when the replica may have become usable or unusable */
  constructor({ name, config }: ReplicaServer, budget: ReplicaBudget, onChange: () => void) {
    this.name = name
    this.#config = config
    this.#budget = budget
    this.#onChange = onChange
    this.#gauges = makeReplicaGauges(name)
    this.#upLog = makeStateLog({
      failed: `Replica ${name} is out of use`,
      restored: `Replica ${name} is in use again`
    })
    this.#lagLog = makeStateLog({
      failed: `Replica ${name} is more than ${farBehindMs / 1_000} s behind; reads of what has changed go to the primary`,
      restored: `Replica ${name} has caught up`
    })
  }

  /** The session for reads, or `undefined` if the replica cannot be used. */
  get usable(): ReplicaSession | undefined {
    return this.#isResponding ? this.#session : undefined
  }

  /** The session for reads, although the replica may not respond. */
  get session(): ReplicaSession | undefined {
    return this.#session
  }

  get isFarBehind(): boolean {
    return this.#isFarBehind
  }

  /** Adds a fence of the primary that has this lineage. */
  addFence(fence: Fence, primary: Lineage): void {
    if (this.#primary !== undefined && findLineageProblem(this.#primary, primary) !== undefined) {
      this.fences.clear()
      this.#suspend()
    }
    this.#primary = primary
    this.fences.add(fence)
    this.#sleep.wake()
  }

  /** Closes the connections; the replica is connected to again. */
  retire(): void {
    this.#suspend()
    Deferred.doneUnsafe(this.#retire, Exit.void)
  }

  /** Connects, follows the position, and connects again, until it is interrupted. */
  get run(): Effect.Effect<never> {
    const attempt = Effect.suspend(() => {
      this.#retire = Deferred.makeUnsafe()
      return Effect.raceFirst(Effect.scoped(this.#follow), Deferred.await(this.#retire))
    })
    return attempt.pipe(
      Effect.matchCauseEffect({
        onFailure: (cause) =>
          Cause.hasInterruptsOnly(cause) ? Effect.void : this.#reportDown(describeCause(cause)),
        onSuccess: () => Effect.void
      }),
      Effect.andThen(Effect.sleep(reconnectDelayMs)),
      Effect.forever
    )
  }

  get #follow(): Effect.Effect<never, SqlError | ReplicaProblem, Scope.Scope> {
    const self = this
    return Effect.gen(function* () {
      const connection = yield* PgConnection.make(self.#config)
      if (!(yield* checkOwnSession(connection)))
        return yield* new ReplicaProblem({ message: "it leads to a pooler" })
      self.fences.losePosition()
      yield* Effect.addFinalizer(() => Effect.sync(() => self.#close()))
      let server: string | undefined
      for (;;) {
        const standby = decodeStandby(yield* self.#queryState(connection))
        if (standby === undefined) return yield* new ReplicaProblem({ message: "it is not a standby" })
        const primary = self.#primary
        if (primary !== undefined) {
          const problem = findLineageProblem(standby, primary)
          if (problem !== undefined) return yield* new ReplicaProblem({ message: problem })
          if (server !== undefined && server !== standby.server)
            return yield* new ReplicaProblem({ message: "its URL leads to different servers" })
          self.fences.advance(standby.position)
          if (server === undefined) {
            server = standby.server
            self.#session = yield* self.#openSession(server)
          }
          yield* self.#reportUp
        }
        yield* self.#sleep.sleep(self.#findInterval())
      }
      // Before the pools close, which may wait for their statements.
    }).pipe(Effect.ensuring(Effect.sync(() => this.#suspend())))
  }

  /** Queries the state. The replica is out of use while it does not respond. */
  #queryState(connection: PgConnection.PgConnection) {
    const onSilence = Effect.suspend(() => {
      this.#suspend()
      return this.#upLog.down(silence)
    })
    const query = Effect.map(connection.query(selectStandby, [], false), ({ rows }) => rows)
    return Effect.raceFirst(
      query,
      Effect.delay(onSilence, responseTimeoutMs).pipe(
        Effect.andThen(Effect.sleep(connectionTimeoutMs)),
        Effect.andThen(Effect.fail(new ReplicaProblem({ message: silence })))
      )
    )
  }

  /** Opens the pools, which connect when they are first used. */
  #openSession(server: string): Effect.Effect<ReplicaSession, SqlError, Scope.Scope> {
    const epoch = ++lastEpoch
    const setUpSession = makeReplicaSessionSetup(server, () => this.fences.position ?? 0n)
    const open = (pool: string, connections: number) =>
      makeQuery(this.#config, pool, connections, this.#mapFailure, setUpSession, replicaDeadlines)
    return Effect.zipWith(
      open("replica-read", this.#budget.prompts),
      open("replica-lookup", this.#budget.keys),
      (queryPrompts, queryKeys) => ({ epoch, queryPrompts, queryKeys })
    )
  }

  /** Every failed read is repeated elsewhere. If its connection failed, the replica must prove that it responds. */
  readonly #mapFailure: UnavailableMapper = <A, E, R>(effect: Effect.Effect<A, E | SqlError, R>) =>
    Effect.catchIf(effect, isSqlError, (error) => {
      if (isConnectionLost(error)) this.#check()
      return Effect.fail(Unavailable)
      // TypeScript does not know that `isSqlError` excludes exactly `SqlError` from a generic error type.
    }) as Effect.Effect<A, Exclude<E, SqlError> | Unavailable, R>

  #check(): void {
    this.#isResponding = false
    this.#sleep.wake()
  }

  #suspend(): void {
    this.#isResponding = false
    this.#gauges.setUp(false)
    this.#onChange()
  }

  #close(): void {
    this.#session = undefined
    this.#suspend()
  }

  get #reportUp(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const next = this.fences.next
      const lagMs = next === undefined ? 0 : performance.now() - next.at
      this.#isFarBehind = lagMs > farBehindMs
      this.#isResponding = true
      this.#gauges.setUp(true)
      this.#gauges.setLag(lagMs / 1_000)
      this.#onChange()
      return Effect.andThen(this.#upLog.up, this.#isFarBehind ? this.#lagLog.down() : this.#lagLog.up)
    })
  }

  #reportDown(reason: string): Effect.Effect<void> {
    return this.#upLog.down(reason)
  }

  /** While a fence waits, the position is queried the more often the less time it has waited. */
  #findInterval(): number {
    const next = this.fences.next
    if (next === undefined) return idleIntervalMs
    return Math.min(idleIntervalMs, Math.max(minIntervalMs, (performance.now() - next.at) / 10))
  }
}

const describeCause = (cause: Cause.Cause<unknown>): string => {
  const error = Cause.squash(cause)
  if (isSqlError(error)) return describeSqlError(error)
  return error instanceof Error ? error.message : String(error)
}
