import * as Clock from "effect/Clock"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import type { Administration } from "../../../../application/administration/Administration.ts"
import type { Caller } from "../../../../application/access/Admission.ts"
import type { Unavailable } from "../../../../application/ports/Unavailable.ts"
import { KeyNotFound, WorkspaceNotFound } from "../../../../application/ports/WorkspaceStore.ts"
import type { Prompts } from "../../../../application/reading/Prompts.ts"
import { ApiKeyId, isActive } from "../../../../domain/ApiKey.ts"
import {
  parsePromptReference,
  parseUuid,
  PromptNotFound,
  type PromptSummary
} from "../../../../domain/Prompt.ts"
import { toSlug } from "../../../../domain/PromptName.ts"
import { maxInt32 } from "../../../../domain/Sizes.ts"
import { WorkspaceId } from "../../../../domain/WorkspaceId.ts"
import { UsageError } from "../output/CommandError.ts"
import { workspaceVariable } from "./Environment.ts"

/** Several workspaces, or several keys of a workspace, have the name that the command line gives. */
export class AmbiguousName extends Data.TaggedError("AmbiguousName")<{
  readonly kind: "workspaces" | "keys"
  readonly name: string
  readonly ids: ReadonlyArray<string>
}> {}

/**
 * Returns the id of the only candidate. Fails with `notFound` if there is no candidate, and with `AmbiguousName` if
 * there are several candidates.
 */
const requireOne = <Id extends string, E>(
  kind: AmbiguousName["kind"],
  name: string,
  candidates: ReadonlyArray<{ readonly id: Id }>,
  notFound: E
): Effect.Effect<Id, E | AmbiguousName> => {
  const [first, ...others] = candidates
  if (first === undefined) return Effect.fail(notFound)
  if (others.length === 0) return Effect.succeed(first.id)
  return Effect.fail(new AmbiguousName({ kind, name, ids: candidates.map(({ id }) => id) }))
}

/** Returns the id of the workspace with this id or name. Does not check that a workspace with the given id exists. */
export const resolveWorkspace = (
  administration: Administration["Service"],
  idOrName: string
): Effect.Effect<WorkspaceId, WorkspaceNotFound | AmbiguousName | Unavailable> => {
  const id = parseUuid(idOrName)
  if (id !== undefined) return Effect.succeed(WorkspaceId.make(id))
  return Effect.flatMap(administration.workspaces, (workspaces) =>
    requireOne(
      "workspaces",
      idOrName,
      workspaces.filter(({ name }) => name === idOrName),
      WorkspaceNotFound
    )
  )
}

/** A key, as a command line specifies it: by its id, or by its name in a workspace. */
export interface KeyReference {
  readonly key: string
  /** The id or name of the workspace. */
  readonly workspace: string | undefined
}

/** Fails if the command line gives the name of a key, but no workspace. Needs no database. */
export const checkKeyReference = ({ key, workspace }: KeyReference): Effect.Effect<void, UsageError> =>
  parseUuid(key) === undefined && workspace === undefined
    ? Effect.fail(
        new UsageError({
          message: `a key name requires a workspace: add --workspace ID or set ${workspaceVariable}`
        })
      )
    : Effect.void

/**
 * Returns the id of the key with this id or name. A name is looked up among the keys of the workspace that are neither
 * revoked nor expired. Does not check that a key with the given id exists.
 */
export const resolveKey = Effect.fnUntraced(function* (
  administration: Administration["Service"],
  { key, workspace = "" }: KeyReference
): Effect.fn.Return<ApiKeyId, KeyNotFound | WorkspaceNotFound | AmbiguousName | Unavailable> {
  const id = parseUuid(key)
  if (id !== undefined) return ApiKeyId.make(id)
  const keys = yield* administration.keys(yield* resolveWorkspace(administration, workspace))
  const now = yield* Clock.currentTimeMillis
  const named = keys.filter((info) => info.name === key && isActive(info, now))
  return yield* requireOne("keys", key, named, KeyNotFound)
})

/**
 * Reads all prompts that match the filter and are not archived. The most recently updated prompt comes first. Reads one
 * page, because a prompt that changes between two reads moves other prompts to other pages.
 */
export const listAllPrompts = (
  prompts: Prompts["Service"],
  operator: Caller,
  filter: Parameters<Prompts["Service"]["list"]>[1]
): Effect.Effect<ReadonlyArray<PromptSummary>, Unavailable> =>
  Effect.map(prompts.list(operator, filter, { page: 1, per_page: maxInt32 }), ({ items }) => items)

/**
 * Returns the id or name by which a prompt is read. A text that is neither an id nor a name is the title of a prompt: the
 * prompt that has the name of this title must have exactly this title.
 */
export const resolvePrompt = Effect.fnUntraced(function* (
  prompts: Prompts["Service"],
  operator: Caller,
  text: string
): Effect.fn.Return<string, PromptNotFound | Unavailable> {
  if (parsePromptReference(text) !== undefined) return text
  const { id, title } = yield* prompts.get(operator, toSlug(text))
  return title === text ? id : yield* Effect.fail(PromptNotFound)
})
