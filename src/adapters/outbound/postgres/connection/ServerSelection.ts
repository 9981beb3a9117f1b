import * as PgConnection from "@effect/sql-pg/PgConnection"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as Redacted from "effect/Redacted"
import type { ConnectionUrl, ServerAddress, TargetSessionAttrs } from "./ConnectionUrl.ts"
import { describeSqlError } from "../driver/SqlErrors.ts"
import { connectTimeout } from "../driver/Timeouts.ts"

/** How long a selection waits for all servers before it takes the first acceptable server. */
const selectionGrace = "250 millis"

const describeServer = `select pg_is_in_recovery() as is_standby,
  current_setting('transaction_read_only') = 'on' as is_read_only`

/**
 * Selects the timeline of a primary, or 0 on a standby. A standby that is promoted begins a new timeline. Some cloud
 * services do not have the functions that this statement calls.
 */
const describeTimeline = `select case when not pg_is_in_recovery()
  then ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int else 0 end as timeline`

interface ServerState {
  readonly is_standby: boolean
  readonly is_read_only: boolean
}

/** A server that responded. */
interface Candidate extends ServerState {
  readonly address: ServerAddress
  readonly timeline: number
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

const formatAddress = ({ host, port }: ServerAddress): string => `${host}:${port}`

/** Returns the state of a server, or fails with the reason why the state cannot be read. */
const probe = (url: ConnectionUrl, address: ServerAddress): Effect.Effect<Candidate, string> =>
  Effect.gen(function* () {
    const connection = yield* PgConnection.make({
      url: Redacted.make(url.formatServerUrl(address)),
      startupParameters: { application_name: "prompt-retrieval" },
      // Only statements of multiplexed connections can be interrupted without waiting for the server.
      multiplex: true
    })
    const query = <A>(text: string) =>
      Effect.map(connection.query(text, [], false), ({ rows }) => rows[0] as unknown as A)
    const state = yield* query<ServerState>(describeServer)
    const { timeline } = yield* Effect.orElseSucceed(query<{ timeline: number }>(describeTimeline), () => ({
      timeline: 0
    }))
    return { address, ...state, timeline }
  }).pipe(
    Effect.scoped,
    Effect.mapError(describeSqlError),
    Effect.timeoutOrElse({ duration: connectTimeout, orElse: () => Effect.fail("no response in time") })
  )

/**
 * Returns the effect that selects one of the servers of a URL: the first server that meets the target, as in libpq. If
 * no server can be selected, the effect fails with an error that names the reason for each server. All servers are
 * queried at the same time, so a silent server delays the selection by at most `selectionGrace` if another server meets
 * the target.
 *
 * If the target is a server for writes, a server is rejected if its timeline is older than the latest timeline that was
 * seen: another server has replaced this server as the primary. Concurrent callers share one selection.
 */
export const makeServerSelection = (url: ConnectionUrl): Effect.Effect<ServerAddress, Error> => {
  const { servers, targetSessionAttrs } = url
  const wantsWrites = targetSessionAttrs === "read-write" || targetSessionAttrs === "primary"
  let latestTimeline = 0
  let running: Fiber.Fiber<ServerAddress, Error> | undefined

  const findProblem = (candidate: Candidate): string | undefined => {
    if (!hasTarget(targetSessionAttrs, candidate)) return `it is not ${targetSessionAttrs}`
    return wantsWrites && candidate.timeline < latestTimeline
      ? `its timeline ${candidate.timeline} is older than ${latestTimeline}`
      : undefined
  }

  const choose = (results: ReadonlyArray<Candidate | string>): Effect.Effect<ServerAddress, Error> => {
    const candidates = results.filter((result) => typeof result !== "string")
    latestTimeline = Math.max(latestTimeline, ...candidates.map(({ timeline }) => timeline))
    const accepted = candidates.filter((candidate) => findProblem(candidate) === undefined)
    const best =
      (targetSessionAttrs === "prefer-standby" ? accepted.find(({ is_standby }) => is_standby) : undefined) ??
      accepted[0]
    if (best !== undefined) return Effect.succeed(best.address)
    const reasons = results.map(
      (result, index) =>
        `${formatAddress(servers[index] as ServerAddress)}: ${typeof result === "string" ? result : findProblem(result)}`
    )
    return Effect.fail(
      new Error(`no server meets target_session_attrs=${targetSessionAttrs} (${reasons.join("; ")})`)
    )
  }

  const select = Effect.gen(function* () {
    const results: Array<Candidate | string> = servers.map(() => "no response in time")
    const isFound = yield* Deferred.make<void>()
    const ask = ([index, address]: readonly [number, ServerAddress]) =>
      Effect.matchEffect(probe(url, address), {
        onSuccess: (candidate) => {
          results[index] = candidate
          return hasTarget(targetSessionAttrs, candidate) ? Deferred.succeed(isFound, undefined) : Effect.void
        },
        onFailure: (reason) =>
          Effect.sync(() => {
            results[index] = reason
          })
      })
    const askAll = Effect.forEach(servers.entries(), ask, { concurrency: "unbounded", discard: true })
    yield* Effect.raceFirst(askAll, Effect.andThen(Effect.sleep(selectionGrace), Deferred.await(isFound)))
    return yield* choose(results)
  })

  return Effect.suspend(() => {
    if (running !== undefined) return Fiber.join(running)
    const end = Effect.sync(() => {
      running = undefined
    })
    // The selection runs in a detached fiber, because other callers may still wait when the first caller is
    // interrupted.
    return Effect.flatMap(Effect.forkDetach(Effect.ensuring(select, end)), (fiber) => {
      running = fiber
      return Fiber.join(fiber)
    })
  })
}
