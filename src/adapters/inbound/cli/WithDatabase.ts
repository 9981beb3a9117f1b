import * as Effect from "effect/Effect"
import { Administration } from "../../../application/administration/Administration.ts"
import type { Caller } from "../../../application/access/Admission.ts"
import { Prompts } from "../../../application/reading/Prompts.ts"
import type { ApiKeyId } from "../../../domain/ApiKey.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { checkKeyReference, type KeyReference, resolveKey, resolveWorkspace } from "./input/NameLookup.ts"
import { CommandRuntime } from "./CommandRuntime.ts"

interface OpenOptions {
  readonly migrate: boolean
}

const withDatabase = <A, E, R>(use: Effect.Effect<A, E, R>, options: OpenOptions = { migrate: false }) =>
  Effect.flatMap(CommandRuntime, ({ useCases }) => Effect.provide(use, useCases(options)))

/**
 * Opens the database and runs `use` with the `Administration` use cases. A command calls this function after it has
 * checked the command line, so that wrong usage is reported even if there is no database. `Command.provide` would open
 * the database before these checks.
 */
export const administer = <A, E, R>(
  use: (administration: Administration["Service"]) => Effect.Effect<A, E, R>,
  options?: OpenOptions
) => withDatabase(Effect.flatMap(Administration, use), options)

/**
 * Opens the database and runs `use` with the `Administration` use cases and the id of a workspace. `workspace` is an id
 * or a name. Does not check that a workspace with a given id exists. Fails with `WorkspaceNotFound` if no workspace has
 * a given name, and with `AmbiguousName` if several workspaces have it.
 */
export const administerWorkspace = <A, E, R>(
  workspace: string,
  use: (administration: Administration["Service"], id: WorkspaceId) => Effect.Effect<A, E, R>,
  options?: OpenOptions
) =>
  administer(
    (administration) =>
      Effect.flatMap(resolveWorkspace(administration, workspace), (id) => use(administration, id)),
    options
  )

/**
 * Opens the database and runs `use` with the `Administration` use cases and the id of a key. `reference` has the id or
 * the name of the key. A name is looked up in the workspace of `reference`.
 */
export const administerKey = <A, E, R>(
  reference: KeyReference,
  use: (administration: Administration["Service"], id: ApiKeyId) => Effect.Effect<A, E, R>
) =>
  Effect.andThen(
    checkKeyReference(reference),
    administer((administration) =>
      Effect.flatMap(resolveKey(administration, reference), (id) => use(administration, id))
    )
  )

/**
 * Opens the database and runs `use` with the `Prompts` use cases and the operator as the caller of a workspace.
 * `workspace` is an id or a name. The operator sees every version, whatever the tier of the workspace.
 */
export const readPrompts = <A, E, R>(
  workspace: string,
  use: (prompts: Prompts["Service"], operator: Caller) => Effect.Effect<A, E, R>
) =>
  withDatabase(
    Effect.gen(function* () {
      const workspaceId = yield* resolveWorkspace(yield* Administration, workspace)
      return yield* use(yield* Prompts, { workspaceId, tier: "team" })
    })
  )
