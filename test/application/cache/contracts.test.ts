import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Memory from "../../../src/adapters/outbound/memory/Memory.ts"
import * as CachingKeyStore from "../../../src/application/cache/CachingKeyStore.ts"
import * as CachingPromptRepo from "../../../src/application/cache/CachingPromptRepo.ts"
import { Outage } from "../../../src/application/cache/Outage.ts"
import type { Archive } from "../../../src/application/transfer/Archive.ts"
import { makeKeyStoreTests } from "../../../src/testing/keyStoreTests.ts"
import { makePromptRepoTests } from "../../../src/testing/promptRepoTests.ts"
import { runContract } from "../../contracts/runContract.ts"
import { SwitchedFeed } from "../../support/database/switchedFeed.ts"

const feed = new SwitchedFeed()

/** Stores an archive, and reports that all workspaces have changed. */
const load = (archive: Archive) =>
  Effect.tap(Memory.storeArchive(archive), () => Effect.sync(() => feed.invalidateAll()))

/** The caches over the in-memory adapters. */
const caching = Layer.mergeAll(CachingKeyStore.layer, CachingPromptRepo.layer).pipe(
  Layer.provide([feed.layer, Outage.layerOff]),
  Layer.provideMerge(Memory.layer)
)

runContract("KeyStore: CachingKeyStore over memory", makeKeyStoreTests(load), caching)
runContract("PromptRepo: CachingPromptRepo over memory", makePromptRepoTests(load), caching)
