import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as CachedKeyStore from "../../../src/adapters/cache/KeyStore.ts"
import * as CachedPromptRepo from "../../../src/adapters/cache/PromptRepo.ts"
import * as Memory from "../../../src/adapters/memory/Memory.ts"
import { Changes } from "../../../src/application/ChangeFeed.ts"
import { WorkspaceStore } from "../../../src/application/WorkspaceStore.ts"
import * as keys from "../../contracts/KeyStore.ts"
import * as prompts from "../../contracts/PromptRepo.ts"
import { switchedFeed } from "./switchedFeed.ts"

/** The memory adapters behind the caches, told of every import. */
const cached = Layer.unwrap(
  Effect.sync(() => {
    const changes = new Changes()
    const telling = Layer.effect(
      WorkspaceStore,
      Effect.map(WorkspaceStore, (store) => ({
        ...store,
        importArchive: (...args) =>
          Effect.ensuring(
            store.importArchive(...args),
            Effect.sync(() => changes.addAll())
          )
      }))
    )
    return Layer.mergeAll(CachedKeyStore.layer, CachedPromptRepo.layer, telling).pipe(
      Layer.provide([Memory.layer, switchedFeed(changes).layer])
    )
  })
)

keys.contract("cached", cached)
prompts.contract("cached", cached)
