import { setTimeout } from "node:timers/promises"
import * as Effect from "effect/Effect"
import type { Stage } from "./Stage.ts"
import type { Random } from "./World.ts"

/** Something that happens to the processes or their connections while a history runs. */
export type Disturbance = { readonly pauseMs: number } & (
  | { readonly kind: "restart"; readonly instance: number; readonly signal: "SIGTERM" | "SIGKILL" }
  | { readonly kind: "rolling restart" }
  | { readonly kind: "restart PgBouncer" }
  | { readonly kind: "close the feed" | "silence the feed"; readonly instance: number }
  | { readonly kind: "slow reads"; readonly delayMs: number }
)

const instances = 2

/** The kinds with their relative frequencies. */
const kinds = [
  ["restart", 2],
  ["rolling restart", 1],
  ["restart PgBouncer", 2],
  ["close the feed", 2],
  ["silence the feed", 1],
  ["slow reads", 2]
] as const

const deck = kinds.flatMap(([kind, weight]) => Array.from({ length: weight }, () => kind))

export const makeDisturbance = (random: Random): Disturbance => {
  const pauseMs = 200 + random.int(1_000)
  const instance = random.int(instances)
  const kind = random.pick(deck)
  switch (kind) {
    case "restart":
      return { pauseMs, kind, instance, signal: random.chance(0.6) ? "SIGKILL" : "SIGTERM" }
    case "close the feed":
    case "silence the feed":
      return { pauseMs, kind, instance }
    case "slow reads":
      return { pauseMs, kind, delayMs: 5 + random.int(150) }
    case "rolling restart":
    case "restart PgBouncer":
      return { pauseMs, kind }
  }
}

/** Returns the name of a disturbance for reports. */
export const describeDisturbance = (disturbance: Disturbance): string => {
  switch (disturbance.kind) {
    case "restart":
      return `restart instance ${disturbance.instance} with ${disturbance.signal}`
    case "close the feed":
    case "silence the feed":
      return `${disturbance.kind} of instance ${disturbance.instance}`
    case "slow reads":
      return `delay reads by ${disturbance.delayMs} ms`
    case "rolling restart":
    case "restart PgBouncer":
      return disturbance.kind
  }
}

/** Carries out a disturbance, and resolves once the processes run again. */
export const disturb = async (stage: Stage, disturbance: Disturbance): Promise<void> => {
  await setTimeout(disturbance.pauseMs)
  switch (disturbance.kind) {
    case "restart":
      return stage.instances[disturbance.instance]!.restart(disturbance.signal)
    case "rolling restart":
      for (const instance of stage.instances) await instance.restart("SIGTERM")
      return
    case "restart PgBouncer":
      return stage.restartPooler()
    case "close the feed":
      return Effect.runPromise(stage.instances[disturbance.instance]!.feed.cut)
    case "silence the feed":
      return Effect.runPromise(stage.instances[disturbance.instance]!.feed.silence)
    case "slow reads":
      for (const { reads } of stage.instances) reads.delay(disturbance.delayMs)
      return
  }
}
