import type * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import type { Administration } from "../../../application/Administration.ts"
import type { CommandError } from "./CommandError.ts"

/** What the commands act through; whoever starts the command line supplies it. */
export interface Operations {
  /** Serves until the process is told to stop. */
  readonly serve: Effect.Effect<void, CommandError>
  /** Brings the database's schema up to date. */
  readonly migrate: Effect.Effect<void, CommandError>
  /** The administration of a database whose schema is up to date; `migrate` brings it there first. */
  readonly administration: (options: {
    readonly migrate: boolean
  }) => Layer.Layer<Administration, CommandError>
}
