import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import type { Archive } from "../../../application/transfer/Archive.ts"
import { InvalidKey } from "../../../domain/ApiKey.ts"
import type { WorkspaceId } from "../../../domain/WorkspaceId.ts"
import { makePromptRepo } from "./MemoryPromptRepo.ts"

/** The in-memory store: the archives of its workspaces. */
export class MemoryState extends Context.Service<MemoryState, Map<WorkspaceId, Archive>>()(
  "prompt-retrieval/MemoryState"
) {}

/** Stores a workspace, its users and its keys. Replaces a stored workspace with the same id. */
export const storeArchive = (archive: Archive): Effect.Effect<void, never, MemoryState> =>
  Effect.map(MemoryState, (archives) => void archives.set(archive.workspace.id, archive))

const makeKeyStore = (archives: MemoryState["Service"]): KeyStore["Service"] => ({
  find: (hash) =>
    Effect.suspend(() => {
      for (const { workspace, users, api_keys } of archives.values()) {
        const key = api_keys.find(({ key_hash }) => key_hash === hash)
        if (key === undefined) continue
        const { id, tier, billing_status } = workspace
        const owner = users.find((user) => user.id === key.created_by)
        return Effect.succeed({
          id: key.id,
          revoked: key.revoked_at !== null,
          expires_at: key.expires_at,
          owner_must_reset: owner?.must_reset_password === true,
          workspace: key.workspace_id === null ? null : { id, tier, billing_status }
        })
      }
      return Effect.fail(InvalidKey)
    }),
  markUsed: () => {}
})

/** Provides an empty in-memory store, and PromptRepo and KeyStore on this store. */
export const layer: Layer.Layer<PromptRepo | KeyStore | MemoryState> = Layer.mergeAll(
  Layer.effect(PromptRepo, Effect.map(MemoryState, makePromptRepo)),
  Layer.effect(KeyStore, Effect.map(MemoryState, makeKeyStore))
).pipe(Layer.provideMerge(Layer.sync(MemoryState, () => new Map())))
