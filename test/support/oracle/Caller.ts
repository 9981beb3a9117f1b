import { Agent } from "node:http"
import { setTimeout } from "node:timers/promises"
import { type Reply, read } from "../clients/read.ts"
import { makeRandom } from "../random.ts"
import { isFromBefore } from "../services/outage.ts"
import type { Observation, Outcome } from "./Checker.ts"
import type { Instance } from "./Stage.ts"
import { describeBody, listTarget, notFound, type Parts, toTargets } from "./State.ts"
import type { World } from "./Changes.ts"

/** The pause between two requests, in milliseconds. */
const minPauseMs = 5
const maxPauseMs = 35
/** The pause after a request that gets a 503 or no response, in milliseconds. */
const retryPauseMs = 50
/** How long a caller may wait for a response after everything is restored. */
const recoveryLimitMs = 30_000

/**
 * Converts a reply to an outcome. `known` are the parts of the representation that the request revalidated. An
 * unexpected reply becomes a content that no state has.
 */
const toOutcome = (target: string, { status, body }: Reply, known: Parts | undefined): Outcome => {
  switch (status) {
    case 200:
      return { _tag: "Content", parts: describeBody(target, body) }
    case 304:
      return { _tag: "Content", parts: known ?? ["304 without a condition"] }
    case 404:
      return { _tag: "Content", parts: notFound }
    case 401:
    case 402:
    case 403:
      return { _tag: "Rejection", reason: `${status} ${JSON.parse(body).error.message}` }
    default:
      return status === 503 || typeof status === "string"
        ? { _tag: "Unavailable", reason: String(status) }
        : { _tag: "Content", parts: [`${status} ${body}`] }
  }
}

/**
 * Makes a caller that reads with one key from one instance, one request after another. It adds every response to
 * `observations`. `listReadable` returns the targets that the key can read at present, which it requests most often.
 */
export const makeCaller = (
  instance: Instance,
  key: number,
  world: World,
  seed: number,
  listReadable: () => ReadonlyArray<string>,
  observations: Array<Observation>
) => {
  const caller = `key ${key} at ${instance.name}`
  const random = makeRandom(seed)
  const agent = new Agent({ keepAlive: true, maxSockets: 1 })
  const targets = [listTarget, ...world.prompts.flatMap((id) => Object.values(toTargets(id)))]
  /** The representations that the caller can revalidate. */
  const representations = new Map<string, { readonly etag: string; readonly parts: Parts }>()
  let isRunning = true

  const readTarget = async (target: string): Promise<Outcome> => {
    const known = random.chance(0.3) ? representations.get(target) : undefined
    const process = instance.process()
    const condition = known === undefined ? {} : { "if-none-match": known.etag }
    const reply = await read(instance.url + target, world.keys[key]!.plaintext, condition, agent)
    const { startedAt, endedAt, headers } = reply
    const outcome = toOutcome(target, reply, known?.parts)
    if (outcome._tag === "Content" && outcome.parts !== notFound)
      representations.set(target, { etag: String(headers.etag), parts: outcome.parts })
    else representations.delete(target)
    observations.push({
      caller,
      key,
      process: instance.process() === process ? process : undefined,
      target,
      startedAt,
      endedAt,
      ageMs: isFromBefore(reply) ? Number(headers.age) * 1_000 : 0,
      outcome
    })
    return outcome
  }

  return {
    /** Reads random targets until `stop`. */
    run: async (): Promise<void> => {
      while (isRunning) {
        const readable = listReadable()
        const { _tag } = await readTarget(
          random.pick(readable.length > 0 && random.chance(0.8) ? readable : targets)
        )
        await setTimeout(
          _tag === "Unavailable" ? retryPauseMs : minPauseMs + random.int(maxPauseMs - minPauseMs)
        )
      }
    },
    /** Ends `run` after its current request. */
    stop: (): void => {
      isRunning = false
    },
    /** Reads every target once. Repeats a request that gets a 503 or no response. Closes the connection. */
    readAll: async (): Promise<void> => {
      const deadline = performance.now() + recoveryLimitMs
      for (const target of targets) {
        for (;;) {
          const outcome = await readTarget(target)
          if (outcome._tag !== "Unavailable") break
          if (performance.now() > deadline) throw new Error(`${caller}: no response: ${outcome.reason}`)
          await setTimeout(retryPauseMs)
        }
      }
      agent.destroy()
    }
  }
}
