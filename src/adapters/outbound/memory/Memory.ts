import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { KeyStore } from "../../../application/ports/KeyStore.ts"
import { PromptRepo } from "../../../application/ports/PromptRepo.ts"
import { InvalidKey, type KeyRecord } from "../../../domain/ApiKey.ts"
import type { StoredKey } from "../../../domain/Workspace.ts"
import { makePromptRepo } from "./MemoryPromptRepo.ts"
import { MemoryState } from "./MemoryState.ts"

const toKeyRecord = (state: MemoryState["Service"], key: StoredKey): KeyRecord => {
  const home = key.workspace_id === null ? undefined : state.workspaces.get(key.workspace_id)?.workspace
  return {
    id: key.id,
    revoked: key.revoked_at !== null,
    expires_at: key.expires_at,
    owner_must_reset: state.users.get(key.created_by)?.must_reset_password === true,
    workspace:
      home === undefined ? null : { id: home.id, tier: home.tier, billing_status: home.billing_status }
  }
}

const makeKeyStore = (state: MemoryState["Service"]): KeyStore["Service"] => ({
  find: (hash) =>
    Effect.suspend(() => {
      const key = [...state.keys.values()].find(({ key_hash }) => key_hash === hash)
      return key === undefined ? Effect.fail(InvalidKey) : Effect.succeed(toKeyRecord(state, key))
    }),
  markUsed: (id, now) => {
    state.lastUsed.set(id, now)
  }
})

/** Provides an empty in-memory store, and PromptRepo and KeyStore on this store. */
export const layer: Layer.Layer<PromptRepo | KeyStore | MemoryState> = Layer.mergeAll(
  Layer.effect(PromptRepo, Effect.map(MemoryState, makePromptRepo)),
  Layer.effect(KeyStore, Effect.map(MemoryState, makeKeyStore))
).pipe(Layer.provideMerge(MemoryState.layer))
