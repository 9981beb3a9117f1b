import { Agent } from "node:http"
import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import { read } from "../../test/support/clients/read.ts"
import { isFromBefore } from "../../test/support/services/outage.ts"
import { type Commit, check, type Observation } from "./Checker.ts"
import { generateHistory, type Step } from "./History.ts"
import { makeRandom } from "./Random.ts"
import type { Instance, Stage } from "./Stage.ts"
import { notFound, type Parts, readState, toParts, toRejection } from "./State.ts"

/**
 * How old a response may be, in milliseconds. After its last heartbeat, a change feed stays up for 3 s, and the clocks
 * of two processes can differ slightly. A busy machine needs no reserve: the age counts from the start of the request,
 * and a process that receives no heartbeat in time serves nothing from its caches.
 */
const boundMs = 3_100

/** The pause of a caller between two requests, in milliseconds. */
const minPauseMs = 5
const maxPauseMs = 35
/** The pause after a request that gets a 503 or no response, in milliseconds. */
const retryPauseMs = 50

/** The commits, disturbances, observations and violations of the history of a seed. */
export type RunResult = Awaited<ReturnType<typeof runHistory>>

/** Commits one step. Returns the times before and after the commit. */
const commit = Effect.fnUntraced(function* (
  { sql, instances }: Stage,
  { statements, cutsFeeds = false, outageMs = 0 }: Step
) {
  const feeds = cutsFeeds ? instances.map(({ feed }) => feed) : []
  const reads = outageMs > 0 ? instances.map(({ reads }) => reads) : []
  const startedAt = yield* sql.withTransaction(
    Effect.gen(function* () {
      for (const statement of statements) yield* statement
      for (const { freeze } of reads) yield* freeze
      // Closes the connections of the feeds. New connections receive nothing.
      for (const { freeze, cut } of feeds) yield* Effect.andThen(freeze, cut)
      return performance.now()
    })
  )
  const endedAt = performance.now()
  yield* Effect.sleep(outageMs)
  for (const { thaw } of [...feeds, ...reads]) yield* thaw
  return { startedAt, endedAt }
})

/**
 * Runs the history of a seed on a stage while callers read, one per key and instance, and checks every response. After
 * the last change, waits for `boundMs`. Then every caller reads everything once more.
 */
export const runHistory = async (stage: Stage, seed: number) => {
  const { world, steps, disturbances } = generateHistory(stage, seed)
  const { instances } = stage
  const commits: Array<Commit> = []
  const disturbed: Array<Omit<Commit, "state">> = []
  const observations: Array<Observation> = []

  const write = async (steps: ReadonlyArray<Step>) => {
    for (const step of steps) {
      await setTimeout(step.pauseMs)
      const span = await Effect.runPromise(commit(stage, step))
      commits.push({ name: step.name, ...span, state: await readState(stage, world) })
    }
  }
  const disturb = async () => {
    for (const { pauseMs, name, run } of disturbances) {
      await setTimeout(pauseMs)
      const startedAt = performance.now()
      await run()
      disturbed.push({ name, startedAt, endedAt: performance.now() })
    }
  }

  const [first, ...others] = steps
  await write([first!])
  const targets = [...commits[0]!.state.contents.get(world.workspaces[0]!)!.keys()]
  const agent = new Agent({ keepAlive: true })
  let isRunning = true

  /** Makes a caller that reads with one key from one instance, one request after another. */
  const makeCaller = (instance: Instance, key: number) => {
    const caller = `key ${key} at ${instance.name}`
    const random = makeRandom(seed + key)
    /** The latest representation of each target, which the caller can revalidate. */
    const representations = new Map<string, { readonly etag: string; readonly parts: Parts }>()

    /** Reads a target. An unexpected response becomes a content that no state has. */
    const readTarget = async (target: string): Promise<void> => {
      const known = random.chance(0.3) ? representations.get(target) : undefined
      const condition = known === undefined ? {} : { "if-none-match": known.etag }
      const process = instance.process()
      const reply = await read(instance.url + target, world.keys[key]!.plaintext, condition, agent)
      const { status, headers, body, startedAt, endedAt } = reply
      if (status === 503 || typeof status === "string") {
        // The instance restarts, or cannot reach the database.
        await setTimeout(retryPauseMs)
        return readTarget(target)
      }
      const isRejected = [401, 402, 403].includes(status)
      let parts = status === 304 && known !== undefined ? known.parts : [String(status)]
      if (status === 200) {
        parts = toParts(target, JSON.parse(body))
        representations.set(target, { etag: headers.etag!, parts })
      }
      observations.push({
        caller,
        key,
        process: instance.process() === process ? process : undefined,
        target,
        startedAt,
        endedAt,
        ageMs: isFromBefore(reply) ? Number(headers.age) * 1_000 : 0,
        rejection: isRejected ? toRejection(status, body) : undefined,
        parts: isRejected ? [] : parts
      })
    }
    return {
      readRandomly: async () => {
        while (isRunning) {
          const { admissions, contents } = commits.at(-1)!.state
          const resources = contents.get(admissions[key]!.workspace ?? "")
          // Most requests are for targets that the key can read at present.
          const readable = targets.filter((target) => resources?.get(target) !== notFound)
          await readTarget(random.pick(random.chance(0.8) ? readable : targets))
          await setTimeout(minPauseMs + random.int(maxPauseMs - minPauseMs))
        }
      },
      readAll: async () => {
        for (const target of targets) await readTarget(target)
      }
    }
  }
  const callers = instances.flatMap((instance) => world.keys.map((_, key) => makeCaller(instance, key)))
  const reading = callers.map(({ readRandomly }) => readRandomly())
  try {
    await Promise.all([write(others), disturb()])
    await setTimeout(boundMs)
  } finally {
    isRunning = false
    await Promise.all(reading)
    for (const { reads } of instances) reads.delay(0)
  }
  await Promise.all(callers.map(({ readAll }) => readAll()))
  agent.destroy()
  return { seed, commits, disturbed, observations, violations: check(commits, observations, boundMs) }
}
