import { setTimeout } from "node:timers/promises"
import type { PgClient } from "@effect/sql-pg/PgClient"
import * as Effect from "effect/Effect"
import { readState } from "./DatabaseState.ts"
import type { Step } from "./History.ts"
import type { Instance } from "./Instance.ts"
import type { Commit } from "./Timeline.ts"
import { insertWorld, type World } from "./World.ts"

/** The failure that rolls a transaction back on purpose. */
class RolledBack {
  readonly _tag = "RolledBack"
}

/** Cuts the change feeds off: their connections are closed, and new connections receive nothing. */
const silenceFeeds = (instances: ReadonlyArray<Instance>) =>
  Effect.forEach(instances, ({ feed }) => Effect.andThen(feed.freeze, feed.cut))
const restoreFeeds = (instances: ReadonlyArray<Instance>) =>
  Effect.forEach(instances, ({ feed }) => feed.thaw)

/** Runs one step and returns its commit, or `undefined` if it was rolled back. */
const runStep = (
  sql: PgClient,
  instances: ReadonlyArray<Instance>,
  world: World,
  { change, end, cutsFeeds }: Step
): Effect.Effect<Commit | undefined> =>
  sql
    .withTransaction(
      Effect.gen(function* () {
        for (const { text, params } of change.statements) yield* sql.unsafe(text, params)
        const state = yield* readState(sql, world)
        if (end === "rollback") return yield* Effect.fail(new RolledBack())
        if (cutsFeeds) yield* silenceFeeds(instances)
        return { name: change.name, state, startedAt: performance.now() }
      })
    )
    .pipe(
      Effect.map((commit) => ({ ...commit, endedAt: performance.now() })),
      Effect.ensuring(cutsFeeds ? restoreFeeds(instances) : Effect.void),
      Effect.catchTag("RolledBack", () => Effect.undefined),
      Effect.orDie
    )

export const createWorld = (sql: PgClient, world: World): Promise<Commit> =>
  Effect.runPromise(
    runStep(sql, [], world, {
      pauseMs: 0,
      change: { name: "create the world", statements: insertWorld(world) },
      end: "commit",
      cutsFeeds: false
    })
  ).then((commit) => commit!)

/** Runs the steps of a history one after another, and adds their commits to the list. */
export const write = async (
  sql: PgClient,
  instances: ReadonlyArray<Instance>,
  world: World,
  steps: ReadonlyArray<Step>,
  commits: Array<Commit>
): Promise<void> => {
  for (const step of steps) {
    await setTimeout(step.pauseMs)
    const commit = await Effect.runPromise(runStep(sql, instances, world, step))
    if (commit !== undefined) commits.push(commit)
  }
}
