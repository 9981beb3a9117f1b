import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import type { SqlError } from "effect/sql/SqlError"
import type { ConnectionUrl, ServerAddress, TargetSessionAttrs } from "./ConnectionUrl.ts"
import { serverIdentity } from "./SessionSetup.ts"
import { describeSqlError } from "./SqlErrors.ts"
import { connectTimeout } from "./Timeouts.ts"

/** How long a selection waits for all servers once one is acceptable. */
const grace = "250 millis"
/** How many connections show whether an address leads to one server: a balancer distributes them. */
const sampleSize = 4

const describeServer = `select pg_is_in_recovery() as is_standby,
  current_setting('transaction_read_only') = 'on' as is_read_only,
  ${serverIdentity} as server`

/** A standby that is promoted begins a new timeline. Some services of cloud providers do not offer these functions. */
const describeTimeline = `select (select system_identifier::text from pg_control_system()) as system,
  case when not pg_is_in_recovery()
    then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int else 0 end as timeline`

interface ServerState {
  readonly is_standby: boolean
  readonly is_read_only: boolean
  /** Identifies a running server, until its next restart. */
  readonly server: string
}

interface Timeline {
  readonly system: string
  readonly timeline: number
}

/** A server that responded. */
interface Candidate extends ServerState, Timeline {
  readonly address: ServerAddress
}

const hasTarget = (target: TargetSessionAttrs, { is_standby, is_read_only }: ServerState): boolean => {
  switch (target) {
    case "read-write":
      return !is_read_only
    case "read-only":
      return is_read_only
    case "primary":
      return !is_standby
    case "standby":
      return is_standby
    default:
      return true
  }
}

/** The server that a selection has chosen. */
export interface SelectedServer {
  readonly address: ServerAddress
  readonly server: string
}

/** The system of a server whose timeline could not be queried. */
const unknownSystem = ""

const formatAddress = ({ host, port }: ServerAddress): string => `${host}:${port}`

/**
 * Chooses one of the servers of a URL. All servers are asked at once, so a silent server delays a selection by at most
 * `grace`. If several have the target, the selection keeps its server, or takes the first one. Where writes are wanted,
 * the latest timeline wins, and a server of an earlier timeline than one seen before is refused: it is a
 * primary that was replaced.
 */
export class ServerSelection {
  readonly #url: ConnectionUrl
  readonly #latestTimelines = new Map<string, number>()
  #selected: SelectedServer | Error = new Error("no server is selected")
  #running: Fiber.Fiber<void> | undefined

  constructor(url: ConnectionUrl) {
    this.#url = url
  }

  /** Returns the server of the latest selection. Throws if that found none. */
  get(): SelectedServer {
    if (this.#selected instanceof Error) throw this.#selected
    return this.#selected
  }

  /** Chooses a server. Concurrent callers share one selection. Never fails: `get` reports that no server was found. */
  readonly select: Effect.Effect<void> = Effect.suspend(() =>
    this.#running === undefined
      ? Effect.flatMap(Effect.forkDetach(this.#run), (fiber) => {
          this.#running = fiber
          return Fiber.join(fiber)
        })
      : Fiber.join(this.#running)
  )

  /** Succeeds with the servers that several simultaneous connections to the selected address lead to. */
  get sample(): Effect.Effect<ReadonlyArray<string>> {
    return Effect.suspend(() => {
      const address =
        this.#selected instanceof Error ? this.#url.servers.slice(0, 1) : [this.#selected.address]
      const probes = Array.from({ length: sampleSize }, () => address).flat()
      const probe = (address: ServerAddress) =>
        Effect.match(this.#probe(address), { onSuccess: ({ server }) => [server], onFailure: () => [] })
      return Effect.map(Effect.forEach(probes, probe, { concurrency: "unbounded" }), (servers) =>
        servers.flat()
      )
    })
  }

  get #run(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      const candidates: Array<Candidate> = []
      const problems = new Map<ServerAddress, string>()
      const isFound = yield* Deferred.make<void>()
      const check = (address: ServerAddress) =>
        Effect.matchEffect(this.#probe(address), {
          onSuccess: (candidate) => {
            candidates.push(candidate)
            const problem = this.#findProblem(candidate)
            if (problem === undefined) return Deferred.succeed(isFound, undefined)
            problems.set(address, problem)
            return Effect.void
          },
          onFailure: (reason) => Effect.sync(() => problems.set(address, reason))
        })
      const checkAll = Effect.forEach(this.#url.servers, check, { concurrency: "unbounded", discard: true })
      yield* Effect.raceFirst(checkAll, Effect.andThen(Effect.sleep(grace), Deferred.await(isFound)))
      this.#selected = this.#choose(candidates) ?? this.#describeFailure(problems)
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          this.#running = undefined
        })
      )
    )
  }

  #probe(address: ServerAddress): Effect.Effect<Candidate, string> {
    return Effect.gen({ self: this }, function* () {
      const connection = yield* PgConnection.make({
        url: Redacted.make(this.#url.urlOf(address)),
        startupParameters: { application_name: "prompt-retrieval" },
        // Only statements of multiplexed connections can be interrupted without waiting for the server.
        multiplex: true
      })
      const query = <A>(text: string): Effect.Effect<A, SqlError> =>
        Effect.map(connection.query(text, [], false), ({ rows }) => rows[0] as unknown as A)
      const [state, timeline] = yield* Effect.all(
        [
          query<ServerState>(describeServer),
          Effect.orElseSucceed(query<Timeline>(describeTimeline), () => ({
            system: unknownSystem,
            timeline: 0
          }))
        ],
        { concurrency: 2 }
      )
      return { address, ...state, ...timeline }
    }).pipe(
      Effect.scoped,
      Effect.mapError(describeSqlError),
      Effect.timeoutOrElse({ duration: connectTimeout, orElse: () => Effect.fail("no response in time") })
    )
  }

  get #wantsWrites(): boolean {
    const { targetSessionAttrs } = this.#url
    return targetSessionAttrs === "read-write" || targetSessionAttrs === "primary"
  }

  /** Returns why a server is not acceptable. */
  #findProblem(candidate: Candidate): string | undefined {
    if (!hasTarget(this.#url.targetSessionAttrs, candidate))
      return `it is not ${this.#url.targetSessionAttrs}`
    if (!this.#wantsWrites) return undefined
    const { system, timeline } = candidate
    if (system === unknownSystem && this.#latestTimelines.size > 0) return "its timeline is unknown"
    const latest = this.#latestTimelines.get(system) ?? 0
    return timeline < latest ? `its timeline ${timeline} is older than ${latest}` : undefined
  }

  #choose(candidates: ReadonlyArray<Candidate>): SelectedServer | undefined {
    for (const { system, timeline } of candidates.filter(({ system }) => system !== unknownSystem))
      this.#latestTimelines.set(system, Math.max(timeline, this.#latestTimelines.get(system) ?? 0))
    const current = this.#selected instanceof Error ? undefined : this.#selected.server
    const rank = (candidate: Candidate): number =>
      (this.#url.targetSessionAttrs === "prefer-standby" && !candidate.is_standby ? 1_000 : 0) +
      (candidate.server === current ? -1 : this.#url.servers.indexOf(candidate.address))
    const [best] = candidates
      .filter((candidate) => this.#findProblem(candidate) === undefined)
      .toSorted((a, b) => rank(a) - rank(b))
    return best
  }

  #describeFailure(problems: ReadonlyMap<ServerAddress, string>): Error {
    const reasons = this.#url.servers.map(
      (address) => `${formatAddress(address)}: ${problems.get(address) ?? "no response in time"}`
    )
    return new Error(
      `no server meets target_session_attrs=${this.#url.targetSessionAttrs} (${reasons.join("; ")})`
    )
  }
}
