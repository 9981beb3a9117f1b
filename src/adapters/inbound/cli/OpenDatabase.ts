import * as Clock from "effect/Clock"
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { Administration } from "../../../application/Administration.ts"
import type { Caller } from "../../../application/Admission.ts"
import { Prompts } from "../../../application/Prompts.ts"
import { KeyNotFound, WorkspaceNotFound } from "../../../application/ports/WorkspaceStore.ts"
import { ApiKeyId, isActive } from "../../../domain/ApiKey.ts"
import { parsePromptReference, toSlug } from "../../../domain/PromptName.ts"
import { parseUuid } from "../../../domain/Uuid.ts"
import { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { CommandOperations } from "./CommandOperations.ts"
import { workspaceVariable } from "./input/Environment.ts"
import { CommandError, UsageError } from "./output/CommandError.ts"
import { quote } from "./output/Output.ts"

// These functions open the database, which stays open until the scope closes. A command checks its command line before
// it calls these functions, so that the program reports wrong usage even without a database. The scope closes before
// the command prints its result, because the reader of the output can be slow.

/** Returns `prompts` and the use cases of operators. If `migrate` is false, the schema must be current. */
export const openDatabase = Effect.fnUntraced(function* (migrate = false) {
  const { openUseCases } = yield* CommandOperations
  const useCases = yield* openUseCases(migrate)
  return { ...Context.get(useCases, Administration), prompts: Context.get(useCases, Prompts) }
})

/**
 * Returns the id of the only candidate. Fails with `notFound` if there is no candidate, and with an error that lists
 * the ids if there are several candidates.
 */
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
  return new CommandError({ message })
}

/** Returns the use cases, and the id of the workspace with this id or name. Does not check that a given id exists. */
export const openWorkspace = Effect.fnUntraced(function* (idOrName: string, migrate?: boolean) {
  const database = yield* openDatabase(migrate)
  const id = parseUuid(idOrName)
  if (id !== undefined) return { ...database, id: WorkspaceId.make(id) }
  const named = (yield* database.workspaces).filter(({ name }) => name === idOrName)
  return { ...database, id: yield* requireOne("workspaces", idOrName, named, WorkspaceNotFound) }
})

/**
 * Returns the use cases, and the id of the key with this id or name. Looks up a name among the keys of the workspace
 * that are neither revoked nor expired. Does not check that a given id exists.
 */
export const openKey = Effect.fnUntraced(function* ({
  key,
  workspace
}: {
  readonly key: string
  readonly workspace: string | undefined
}) {
  const id = parseUuid(key)
  if (id !== undefined) return { ...(yield* openDatabase()), id: ApiKeyId.make(id) }
  if (workspace === undefined)
    return yield* new UsageError({
      message: `a key name requires a workspace: add --workspace ID or set ${workspaceVariable}`
    })
  const database = yield* openWorkspace(workspace)
  const now = yield* Clock.currentTimeMillis
  const keys = yield* database.keys(database.id)
  const named = keys.filter((info) => info.name === key && isActive(info, now))
  return { ...database, id: yield* requireOne("keys", key, named, KeyNotFound) }
})

/** Returns `prompts`, and a caller of the highest tier for the operator, so that the operator sees every version. */
export const openPrompts = Effect.fnUntraced(function* (workspace: string) {
  const { prompts, id } = yield* openWorkspace(workspace)
  const operator: Caller = { workspaceId: id, tier: "team" }
  return { prompts, operator }
})

/**
 * Returns what `openPrompts` returns, and the id or name with which a command can read the prompt. If `prompt` is
 * neither an id nor a name, `prompt` is a title. In this case, looks up the prompt by the slug of the title, and fails
 * if the prompt has another title.
 */
export const openPrompt = Effect.fnUntraced(function* ({
  workspace,
  prompt
}: Readonly<Record<"workspace" | "prompt", string>>) {
  const { prompts, operator } = yield* openPrompts(workspace)
  if (parsePromptReference(prompt) !== undefined) return { prompts, operator, id: prompt }
  const slug = toSlug(prompt)
  const { id, title } = yield* prompts.get(operator, slug)
  if (title === prompt) return { prompts, operator, id }
  return yield* new CommandError({
    message: `the prompt ${slug} has the title ${quote(title)}; for the ids, see 'prompt-retrieval prompts list'`
  })
})
