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
  | { readonly kind: "slow reads" | "delay the standby"; readonly delayMs: number }
  | { readonly kind: "freeze the standby"; readonly durationMs: number }
  | { readonly kind: "restart the standby" }
)

const instances = 2

/** The kinds with their relative frequencies. */
const kinds = [
  ["restart", 2],
  ["rolling restart", 1],
  ["restart PgBouncer", 2],
  ["close the feed", 2],
  ["silence the feed", 1],
  ["slow reads", 2],
  ["delay the standby", 6],
  ["freeze the standby", 1],
  ["restart the standby", 1]
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
    case "delay the standby":
      return { pauseMs, kind, delayMs: random.pick([0, 20, 200, 1_000, 5_000]) }
    case "freeze the standby":
      return { pauseMs, kind, durationMs: 500 + random.int(2_000) }
    case "rolling restart":
    case "restart PgBouncer":
    case "restart the standby":
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
    case "delay the standby":
      return `delay the standby by ${disturbance.delayMs} ms`
    case "freeze the standby":
      return `freeze the standby for ${disturbance.durationMs} ms`
    case "rolling restart":
    case "restart PgBouncer":
    case "restart the standby":
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
    case "delay the standby":
      return stage.servers.delayStandby(disturbance.delayMs)
    case "freeze the standby":
      return stage.servers.freezeStandby(disturbance.durationMs)
    case "restart the standby":
      return stage.servers.restartStandby()
  }
}
