import * as Clock from "effect/Clock"
import * as Effect from "effect/Effect"
import { Administration } from "../../../application/administration/Administration.ts"
import type { Caller } from "../../../application/access/Admission.ts"
import { KeyNotFound, WorkspaceNotFound } from "../../../application/ports/WorkspaceStore.ts"
import { Prompts } from "../../../application/reading/Prompts.ts"
import { ApiKeyId, isActive } from "../../../domain/ApiKey.ts"
import { parseUuid, PromptNotFound } from "../../../domain/Prompt.ts"
import { parsePromptReference, toSlug } from "../../../domain/PromptName.ts"
import { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { CommandRuntime } from "./CommandRuntime.ts"
import { workspaceVariable } from "./input/Environment.ts"
import { CommandError, UsageError } from "./output/CommandError.ts"
import { quote } from "./output/Output.ts"

// These functions open the database. A command calls them after it has checked the command line, so that wrong usage is
// reported even if there is no database.

interface OpenOptions {
  /** If true, the schema is migrated first. Otherwise it must be current. */
  readonly migrate: boolean
}

const withDatabase = <A, E, R>(use: Effect.Effect<A, E, R>, options: OpenOptions = { migrate: false }) =>
  Effect.flatMap(CommandRuntime, ({ useCases }) => Effect.provide(use, useCases(options)))

/** Returns the id of the only candidate. Fails with `notFound`, or with the ids of several candidates. */
const requireOne = <Id extends string, E>(
  kind: "workspaces" | "keys",
  name: string,
  candidates: ReadonlyArray<{ readonly id: Id }>,
  notFound: E
): Effect.Effect<Id, E | CommandError> => {
  const [first, ...others] = candidates.map(({ id }) => id)
  if (first === undefined) return Effect.fail(notFound)
  if (others.length === 0) return Effect.succeed(first)
  const ids = [first, ...others]
  const message = `${ids.length} ${kind} have the name ${quote(name)}: use one of the ids ${ids.join(", ")}`
  return Effect.fail(new CommandError({ message }))
}

const resolveWorkspace = Effect.fnUntraced(function* (
  { workspaces }: Administration["Service"],
  idOrName: string
) {
  const id = parseUuid(idOrName)
  if (id !== undefined) return WorkspaceId.make(id)
  const named = (yield* workspaces).filter(({ name }) => name === idOrName)
  return yield* requireOne("workspaces", idOrName, named, WorkspaceNotFound)
})

export const administer = <A, E, R>(
  use: (administration: Administration["Service"]) => Effect.Effect<A, E, R>,
  options?: OpenOptions
) => withDatabase(Effect.flatMap(Administration, use), options)

/**
 * Runs `use` with the id of a workspace. `workspace` is an id or a name. Does not check that a workspace with a given id
 * exists.
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
 * Runs `use` with the id of a key. `key` is an id, or a name among the keys of the workspace that are neither revoked nor
 * expired. Does not check that a key with a given id exists.
 */
export const administerKey = <A, E, R>(
  { key, workspace }: { readonly key: string; readonly workspace: string | undefined },
  use: (administration: Administration["Service"], id: ApiKeyId) => Effect.Effect<A, E, R>
) => {
  const id = parseUuid(key)
  if (id !== undefined) return administer((administration) => use(administration, ApiKeyId.make(id)))
  if (workspace === undefined)
    return new UsageError({
      message: `a key name requires a workspace: add --workspace ID or set ${workspaceVariable}`
    })
  return administerWorkspace(
    workspace,
    Effect.fnUntraced(function* (administration, workspaceId) {
      const keys = yield* administration.keys(workspaceId)
      const now = yield* Clock.currentTimeMillis
      const named = keys.filter((info) => info.name === key && isActive(info, now))
      return yield* use(administration, yield* requireOne("keys", key, named, KeyNotFound))
    })
  )
}

/**
 * Runs `use` with the operator as the caller of a workspace. `workspace` is an id or a name. The operator sees every
 * version, regardless of the tier of the workspace.
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

/**
 * Like `readPrompts`, with the id or name by which a prompt is read. If `prompt` is neither an id nor a name, it is a
 * title. The prompt is then found by the name that follows from the title, and must have this title.
 */
export const readPrompt = <A, E, R>(
  { workspace, prompt }: { readonly workspace: string; readonly prompt: string },
  use: (prompts: Prompts["Service"], operator: Caller, id: string) => Effect.Effect<A, E, R>
) =>
  readPrompts(
    workspace,
    Effect.fnUntraced(function* (prompts, operator) {
      if (parsePromptReference(prompt) !== undefined) return yield* use(prompts, operator, prompt)
      const { id, title } = yield* prompts.get(operator, toSlug(prompt))
      return title === prompt ? yield* use(prompts, operator, id) : yield* Effect.fail(PromptNotFound)
    })
  )
