import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import type * as Layer from "effect/Layer"
import { Administration } from "../../../application/Administration.ts"
import type { Unavailable } from "../../../application/ports/Unavailable.ts"
import type { CommandError } from "./CommandError.ts"

/** The operations that commands need from the program that runs them. */
export class Operations extends Context.Service<
  Operations,
  {
    /** Serves until the process receives a stop signal. */
    readonly serve: Effect.Effect<void, CommandError | Unavailable>
    /** Brings the database schema up to date. */
    readonly migrate: Effect.Effect<void, CommandError | Unavailable>
    /** The administration of the database. Migrates the schema first with `migrate`; otherwise it must be current. */
    readonly administration: (options: {
      readonly migrate: boolean
    }) => Layer.Layer<Administration, CommandError | Unavailable>
  }
>()("prompt-retrieval/cli/Operations") {}

/**
 * Opens the database and runs `use` with its administration. A command calls this after it has checked its input, so
 * that wrong usage is reported without a database; `Command.provide` would open the database first.
 */
export const administer = <A, E, R>(
  use: (administration: Administration["Service"]) => Effect.Effect<A, E, R>,
  options: { readonly migrate: boolean } = { migrate: false }
) =>
  Effect.flatMap(Operations, ({ administration }) =>
    Effect.provide(Effect.flatMap(Administration, use), administration(options))
  )
