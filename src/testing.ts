/**
 * In-memory adapters for tests of programs that embed the use cases. The adapters need no database, network or files.
 * This module also has the contract suites of `PromptRepo` and `KeyStore`, for programs with their own stores.
 *
 * `examples/memory-testing.ts` and `examples/own-store.ts` are examples.
 *
 * @module
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Memory from "./adapters/outbound/memory/Memory.ts"
import * as InProcessRateLimiter from "./adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { Lifecycle } from "./application/Lifecycle.ts"
import type { KeyStore } from "./application/ports/KeyStore.ts"
import type { PromptRepo } from "./application/ports/PromptRepo.ts"
import type { RateLimiter } from "./application/ports/RateLimiter.ts"
import { decodeArchive } from "./application/transfer/ArchiveDecoder.ts"
import type { InvalidContent } from "./domain/WorkspaceContent.ts"

/**
 * Provides everything that `Prompts` and `Admission` need, in memory. The prompts, keys and workspaces are in one store,
 * which starts empty. The rate limiter counts the requests to this process. The service starts in the phase `serving`.
 */
export const memoryLayer: Layer.Layer<PromptRepo | KeyStore | Memory.MemoryState | RateLimiter | Lifecycle> =
  Layer.mergeAll(Memory.layer, InProcessRateLimiter.layer, Lifecycle.serving)

/**
 * Adds a workspace with its users and keys to the in-memory store. If the workspace exists, replaces its content, and
 * adds or updates its users and keys. If the archive is invalid, fails with `InvalidContent` and changes nothing. Does
 * not check whether the ids, emails and keys are unique among all workspaces of the store.
 *
 * @param archive The parsed JSON of a workspace archive, such as `prompt-retrieval export` writes.
 */
export const importArchive = (archive: unknown): Effect.Effect<void, InvalidContent, Memory.MemoryState> =>
  Effect.flatMap(
    Effect.suspend(() => Effect.fromResult(decodeArchive(archive))),
    Memory.storeArchive
  )

export type { MemoryState } from "./adapters/outbound/memory/Memory.ts"
export type { Archive } from "./application/transfer/Archive.ts"
export { makeKeyStoreTests } from "./testing/keyStoreTests.ts"
export { type ContractTest, type LoadWorkspace, makePromptRepoTests } from "./testing/promptRepoTests.ts"
