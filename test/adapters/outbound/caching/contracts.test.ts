import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as CachingKeyStore from "../../../../src/adapters/outbound/caching/CachingKeyStore.ts"
import * as CachingPromptRepo from "../../../../src/adapters/outbound/caching/CachingPromptRepo.ts"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { WorkspaceRevisions } from "../../../../src/application/freshness/WorkspaceRevisions.ts"
import * as Outage from "../../../../src/application/freshness/Outage.ts"
import { WorkspaceStore } from "../../../../src/application/ports/WorkspaceStore.ts"
import { testKeyStore } from "../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../contracts/PromptRepo.ts"
import { ignoreObservations } from "../../../support/services/observations.ts"
import { switchedFeed } from "../../../support/database/switchedFeed.ts"

/** The caches over the in-memory adapters. Every import reports a change of all workspaces. */
const caching = Layer.unwrap(
  Effect.sync(() => {
    const changes = new WorkspaceRevisions()
    const notifying = Layer.effect(
      WorkspaceStore,
      Effect.map(WorkspaceStore, (store) => ({
        ...store,
        importWorkspace: (...args) =>
          Effect.ensuring(
            store.importWorkspace(...args),
            Effect.sync(() => changes.invalidateAll())
          )
      }))
    )
    return Layer.mergeAll(CachingKeyStore.layer, CachingPromptRepo.layer, notifying).pipe(
      Layer.provide([Memory.layer, switchedFeed(changes).layer, ignoreObservations, Outage.offLayer])
    )
  })
)

testKeyStore("CachingKeyStore over memory", caching)
testPromptRepo("CachingPromptRepo over memory", caching)
