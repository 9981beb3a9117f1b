import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Reply } from "../../test/support/clients/read.ts"
import { startService } from "../../test/support/services/startService.ts"
import { quantile } from "../load.ts"

/** A run of one kind of stress. */
export interface Run {
  readonly seconds: number
  /** Acquires a resource, and releases the resource at the end of the run. */
  readonly acquire: <A>(resource: Effect.Effect<A, never, Scope.Scope>) => Promise<A>
  /** Records a problem if `holds` is false. */
  readonly check: (holds: boolean, problem: string) => void
}

/** Starts a service, and kills the service at the end of the run if the service is still running. */
export const acquireService = ({ acquire }: Run, env: Readonly<Record<string, string>>) =>
  acquire(
    Effect.acquireRelease(
      Effect.promise(() => startService({ RATE_LIMIT_PER_PROCESS: "100000000", ...env })),
      ({ process }) => Effect.sync(() => process.kill("SIGKILL"))
    )
  )

/** Returns the 99th percentile of the durations, in milliseconds. */
export const p99 = (replies: ReadonlyArray<Reply>): number =>
  quantile(
    replies.map(({ startedAt, endedAt }) => endedAt - startedAt),
    0.99
  )
