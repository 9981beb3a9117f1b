import { assert, describe, it } from "@effect/vitest"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Fiber from "effect/Fiber"
import * as Schema from "effect/Schema"
import { RevisionedCache } from "../../../src/application/cache/RevisionedCache.ts"
import type { WorkspaceId } from "../../../src/domain/WorkspaceId.ts"
import { newId } from "../../support/archives.ts"
import { switchedFeed } from "../../support/database/switchedFeed.ts"

const limits = { maxSize: 2, maxAgeMs: 30_000 }
const workspaces = [newId<WorkspaceId>(), newId<WorkspaceId>()] as const

const index = (count: number) => Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: count - 1 }))
const Workspace = index(workspaces.length)
/** Selects an unfinished request or read: 0 selects the oldest. Numbers that are too large wrap around. */
const Nth = index(6)
const pick = <A>(items: ReadonlyArray<A>, nth: number): A | undefined => items[nth % items.length]

const Step = Schema.Union([
  /** A caller requests the value of a workspace. */
  Schema.Struct({ step: Schema.Literal("request"), workspace: Workspace }),
  /** An unfinished read takes the current value of the database. The read returns this value when it finishes. */
  Schema.Struct({ step: Schema.Literal("snapshot"), nth: Nth }),
  Schema.Struct({ step: Schema.Literal("finish"), nth: Nth }),
  /** A caller is interrupted. */
  Schema.Struct({ step: Schema.Literal("interrupt"), nth: Nth }),
  /** The database contains a new value. The feed reports it later. */
  Schema.Struct({ step: Schema.Literal("commit"), workspace: Workspace }),
  Schema.Struct({ step: Schema.Literal("report"), workspace: Workspace }),
  /** A reader has found a change that the feed has not reported. */
  Schema.Struct({ step: Schema.Literal("invalidate"), workspace: Workspace }),
  Schema.Struct({ step: Schema.Literals(["down", "up"]) })
])

/** A database read that the test takes through its stages. */
interface Read {
  readonly workspace: number
  snapshot: number | undefined
  readonly finished: Deferred.Deferred<void>
}

/**
 * Runs random steps against a database whose values are version numbers. Checks every completed request: it returns at
 * least the version that the feed had reported, and that any response had contained, when the request was made.
 */
const checkSteps = Effect.fnUntraced(function* (steps: ReadonlyArray<typeof Step.Type>) {
  const feed = switchedFeed()
  const cache = new RevisionedCache<number>(feed, limits, Object.is)
  const stored = workspaces.map(() => 0)
  /** The lowest version of each workspace that a request may return. */
  const floors = workspaces.map(() => 0)
  const raiseFloor = (workspace: number, version: number) => {
    floors[workspace] = Math.max(floors[workspace]!, version)
  }
  let reads: Array<Read> = []
  let requests: Array<{
    readonly workspace: number
    readonly fiber: Fiber.Fiber<number>
    readonly floor: number
  }> = []

  const startRead = (workspace: number) =>
    Effect.suspend(() => {
      const read: Read = { workspace, snapshot: undefined, finished: Deferred.makeUnsafe() }
      reads.push(read)
      return Effect.map(Deferred.await(read.finished), () => read.snapshot!).pipe(
        Effect.onExit(() =>
          Effect.sync(() => {
            reads = reads.filter((other) => other !== read)
          })
        )
      )
    })

  const request = (workspace: number): Effect.Effect<number> => {
    const key = String(workspace)
    const id = workspaces[workspace]!
    const value = cache.get(key)
    if (value !== undefined) return Effect.succeed(value)
    return cache.load(key, startRead(workspace), (value) => ({ workspace: id, value, size: 1 }))
  }

  const checkFinished = (): void => {
    requests = requests.filter(({ workspace, fiber, floor }) => {
      const exit = fiber.pollUnsafe()
      if (exit !== undefined && Exit.isSuccess(exit)) {
        assert.isAtLeast(exit.value, floor)
        raiseFloor(workspace, exit.value)
      }
      return exit === undefined
    })
  }

  const takeSnapshot = (read: Read | undefined): void => {
    if (read !== undefined) read.snapshot ??= stored[read.workspace]!
  }

  const apply = Effect.fnUntraced(function* (step: typeof Step.Type) {
    switch (step.step) {
      case "request": {
        const { workspace } = step
        const floor = floors[workspace]!
        const fiber = yield* Effect.forkChild(
          Effect.suspend(() => request(workspace)),
          { startImmediately: true }
        )
        requests.push({ workspace, fiber, floor })
        return
      }
      case "snapshot":
        return takeSnapshot(pick(reads, step.nth))
      case "finish": {
        const read = pick(reads, step.nth)
        takeSnapshot(read)
        if (read !== undefined) yield* Deferred.succeed(read.finished, undefined)
        return
      }
      case "interrupt": {
        const leaving = pick(requests, step.nth)
        if (leaving !== undefined) yield* Fiber.interrupt(leaving.fiber)
        return
      }
      case "commit":
        stored[step.workspace]!++
        return
      case "report":
        // A feed that is down misses the report.
        if (!feed.isUp) return
        feed.changes.invalidate(workspaces[step.workspace]!)
        return raiseFloor(step.workspace, stored[step.workspace]!)
      case "invalidate":
        return cache.invalidate(workspaces[step.workspace]!)
      case "down":
        feed.isUp = false
        return
      case "up":
        if (feed.isUp) return
        feed.changes.invalidateAll()
        feed.isUp = true
        for (const [workspace, version] of stored.entries()) raiseFloor(workspace, version)
    }
  })

  const run = Effect.fnUntraced(function* (step: typeof Step.Type) {
    yield* apply(step)
    // Lets every fiber run until it waits.
    for (let turn = 0; turn < 5; turn++) yield* Effect.yieldNow
    checkFinished()
  })

  for (const step of steps) yield* run(step)
  while (reads.length > 0) yield* run({ step: "finish", nth: 0 })
  assert.deepStrictEqual(requests, [])
})

describe("RevisionedCache", () => {
  it.effect.prop(
    "no response is older than the last reported change or than a response that was sent before its request",
    { steps: Schema.Array(Step).check(Schema.isMinLength(40), Schema.isMaxLength(60)) },
    Effect.fnUntraced(function* ({ steps }) {
      yield* checkSteps(steps)
    }),
    { arbitrary: { runs: 800 }, timeout: 60_000 }
  )
})
