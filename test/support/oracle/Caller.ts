import { Agent } from "node:http"
import { setTimeout } from "node:timers/promises"
import { type Reply, read } from "../clients/read.ts"
import { isFromBefore } from "../services/outage.ts"
import type { Instance } from "./Instance.ts"
import { describeBody, listTarget, toTargets } from "./Targets.ts"
import { notFound, type Observation, type Outcome, type Parts } from "./Timeline.ts"
import type { Random, World } from "./World.ts"

/** The pause between two requests, in milliseconds. */
const minPauseMs = 5
const maxPauseMs = 35
/** The pause after a request that gets a 503 or no response, in milliseconds. */
const retryPauseMs = 50
/** How long a caller may wait for a response after everything is restored. */
const recoveryLimitMs = 30_000

/** A representation that the caller can revalidate. */
interface Known {
  readonly etag: string
  readonly parts: Parts
}

/** What a caller reads, and where the caller records the responses. */
export interface CallerOptions {
  readonly instance: Instance
  /** The index of the caller's key. */
  readonly key: number
  readonly world: World
  readonly random: Random
  /** Returns the targets that the key can read at present. The caller requests these targets most often. */
  readonly listReadable: () => ReadonlyArray<string>
  readonly observations: Array<Observation>
}

/** Reads with one key from one instance, one request after another. */
export class Caller {
  readonly #name: string
  readonly #instance: Instance
  readonly #key: number
  readonly #world: World
  readonly #random: Random
  readonly #listReadable: () => ReadonlyArray<string>
  readonly #observations: Array<Observation>
  readonly #agent = new Agent({ keepAlive: true, maxSockets: 1 })
  readonly #known = new Map<string, Known>()
  readonly #targets: ReadonlyArray<string>
  #isRunning = true

  constructor({ instance, key, world, random, listReadable, observations }: CallerOptions) {
    this.#name = `key ${key} at ${instance.name}`
    this.#instance = instance
    this.#key = key
    this.#world = world
    this.#random = random
    this.#listReadable = listReadable
    this.#observations = observations
    this.#targets = [listTarget, ...world.prompts.flatMap((id) => Object.values(toTargets(id)))]
  }

  /** Reads random targets until `stop`. */
  async run(): Promise<void> {
    while (this.#isRunning) {
      const { outcome } = await this.#read(this.#chooseTarget())
      await setTimeout(
        outcome._tag === "Unavailable" ? retryPauseMs : minPauseMs + this.#random.int(maxPauseMs - minPauseMs)
      )
    }
  }

  /** Ends `run` after its current request. */
  stop(): void {
    this.#isRunning = false
  }

  /** Reads every target once. Repeats a request that gets a 503 or no response. Closes the connection. */
  async readAll(): Promise<void> {
    const deadline = performance.now() + recoveryLimitMs
    for (const target of this.#targets) {
      for (;;) {
        const { outcome } = await this.#read(target)
        if (outcome._tag !== "Unavailable") break
        if (performance.now() > deadline) throw new Error(`${this.#name}: no response: ${outcome.reason}`)
        await setTimeout(retryPauseMs)
      }
    }
    this.#agent.destroy()
  }

  #chooseTarget(): string {
    const readable = this.#listReadable()
    return this.#random.pick(readable.length > 0 && this.#random.chance(0.8) ? readable : this.#targets)
  }

  async #read(target: string): Promise<Observation> {
    const known = this.#random.chance(0.3) ? this.#known.get(target) : undefined
    const process = this.#instance.process()
    const reply = await read(
      this.#instance.url + target,
      this.#world.keys[this.#key]!.plaintext,
      known === undefined ? {} : { "if-none-match": known.etag },
      this.#agent
    )
    const outcome = toOutcome(target, reply, known)
    if (outcome._tag === "Content" && outcome.parts !== notFound)
      this.#known.set(target, { etag: String(reply.headers.etag), parts: outcome.parts })
    else this.#known.delete(target)
    const observation: Observation = {
      caller: this.#name,
      key: this.#key,
      process: this.#instance.process() === process ? process : undefined,
      target,
      startedAt: reply.startedAt,
      endedAt: reply.endedAt,
      ageMs: isFromBefore(reply) ? Number(reply.headers.age) * 1_000 : 0,
      outcome
    }
    this.#observations.push(observation)
    return observation
  }
}

/** Converts a reply to an outcome. `known` is the representation that the request revalidated. */
const toOutcome = (target: string, { status, body }: Reply, known: Known | undefined): Outcome => {
  switch (status) {
    case 200:
      return { _tag: "Content", parts: describeBody(target, body) }
    case 304:
      return known === undefined
        ? { _tag: "Unexpected", reason: "304 without a condition" }
        : { _tag: "Content", parts: known.parts }
    case 404:
      return { _tag: "Content", parts: notFound }
    case 401:
    case 402:
    case 403:
      return { _tag: "Rejection", reason: `${status} ${JSON.parse(body).error.message}` }
    case 503:
      return { _tag: "Unavailable", reason: "503" }
    default:
      return typeof status === "string"
        ? { _tag: "Unavailable", reason: status }
        : { _tag: "Unexpected", reason: `${status} ${body}` }
  }
}
