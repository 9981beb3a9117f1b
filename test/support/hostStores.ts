import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Memory from "../../src/adapters/outbound/memory/Memory.ts"
import { MemoryState } from "../../src/adapters/outbound/memory/MemoryState.ts"
import type { Archive } from "../../src/application/formats/Archive.ts"
import { KeyStore } from "../../src/application/ports/KeyStore.ts"
import { type PromptFilter, PromptRepo } from "../../src/application/ports/PromptRepo.ts"
import { WorkspaceStore } from "../../src/application/ports/WorkspaceStore.ts"
import type { ApiKeyId, KeyHash } from "../../src/domain/ApiKey.ts"
import type { PromptId } from "../../src/domain/Prompt.ts"
import type { Timestamp } from "../../src/domain/Timestamp.ts"
import type { WorkspaceId } from "../../src/domain/WorkspaceId.ts"
import type { HostKeyStore, HostPromptRepo } from "../../src/index.ts"
import { toPartStream, versionNumber } from "./archives.ts"
import { getSource } from "./model.ts"

type Services = PromptRepo | KeyStore | WorkspaceStore | MemoryState

/** Returns the stores of a host over the in-memory adapters. */
export const toHostStores = (services: Context.Context<Services>) => {
  const prompts = Context.get(services, PromptRepo)
  const keys = Context.get(services, KeyStore)
  const { workspaces } = Context.get(services, MemoryState)
  /** Runs a read. An expected failure becomes `undefined`. */
  const find = <A>(read: Effect.Effect<A, unknown>): Promise<A | undefined> =>
    Effect.runPromise(Effect.catch(read, () => Effect.undefined))
  const promptRepo: HostPromptRepo = {
    list: (workspace, filter, page) =>
      Effect.runPromise(prompts.list(workspace as WorkspaceId, filter as PromptFilter, page)),
    get: (workspace, id) => find(prompts.get(workspace as WorkspaceId, id as PromptId)),
    // The in-memory adapter checks the size of a source, which is up to the adapter of the host.
    getSource: async (workspace, id) => {
      const archive = workspaces.get(workspace as WorkspaceId)
      const prompt = archive?.prompts.find((prompt) => prompt.id === id)
      return archive && prompt && getSource(archive as Archive, prompt)
    },
    listVersions: (workspace, id, oldest, page) =>
      find(prompts.listVersions(workspace as WorkspaceId, id as PromptId, oldest as Timestamp, page)),
    getVersion: (workspace, id, number, oldest) =>
      find(
        prompts.getVersion(
          workspace as WorkspaceId,
          id as PromptId,
          versionNumber(number),
          oldest as Timestamp
        )
      )
  }
  const keyStore: HostKeyStore = {
    find: (hash) => find(keys.find(hash as KeyHash)),
    markUsed: (id, usedAt) => keys.markUsed(id as ApiKeyId, usedAt.getTime())
  }
  return { promptRepo, keyStore }
}

/** Creates the stores of a host, which start empty, and the function that imports archives into them. */
export const makeHostStores = async () => {
  const services = await Effect.runPromise(Effect.scoped(Layer.build(Memory.layer)))
  const importArchive = (archive: Archive): Promise<void> =>
    Effect.runPromise(
      Effect.asVoid(Context.get(services, WorkspaceStore).importWorkspace(toPartStream(archive)))
    )
  return { ...toHostStores(services), importArchive }
}
