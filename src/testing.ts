/**
 * In-memory adapters for tests of programs that embed the use cases. The adapters need no database, network or files.
 * This module also has the contract suites of `PromptRepo` and `KeyStore`, for programs with their own stores.
 *
 * ```ts
 * import { readFileSync } from "node:fs"
 * import * as Effect from "effect/Effect"
 * import * as Layer from "effect/Layer"
 * import { Admission, defaultRateLimits } from "prompt-retrieval/application/Admission"
 * import { Prompts } from "prompt-retrieval/application/Prompts"
 * import { importArchive, memoryLayer } from "prompt-retrieval/testing"
 *
 * const services = Layer.mergeAll(Prompts.layer, Admission.layer(defaultRateLimits)).pipe(
 *   Layer.provideMerge(memoryLayer)
 * )
 *
 * const program = Effect.gen(function* () {
 *   yield* importArchive(JSON.parse(readFileSync("workspace.json", "utf8")))
 *   const admission = yield* Admission
 *   const prompts = yield* Prompts
 *   const caller = yield* admission.admit(process.env.PROMPT_RETRIEVAL_KEY)
 *   const { items, total } = yield* prompts.list(caller, { type: "system" }, { page: 1, per_page: 20 })
 *   const { resolved_content } = yield* prompts.getResolved(caller, items[0]!.id)
 *   return { total, resolved_content }
 * })
 *
 * console.log(await Effect.runPromise(Effect.provide(program, services)))
 * ```
 *
 * @module
 */
import * as Layer from "effect/Layer"
import { addressLayer, type BasePath, type PublicUrl } from "./adapters/inbound/http/request/PublicUrl.ts"
import * as Memory from "./adapters/outbound/memory/Memory.ts"
import type { MemoryState } from "./adapters/outbound/memory/MemoryState.ts"
import * as InProcessRateLimiter from "./adapters/outbound/rate-limiter/InProcessRateLimiter.ts"
import { Lifecycle } from "./application/Lifecycle.ts"
import * as Outage from "./application/cache/Outage.ts"
import type { KeyStore } from "./application/ports/KeyStore.ts"
import type { PromptRepo } from "./application/ports/PromptRepo.ts"
import type { RateLimiter } from "./application/ports/RateLimiter.ts"

/**
 * Provides everything that `Prompts` and `Admission` need, in memory. The prompts, keys and workspaces are in one
 * store, which starts empty. Rate limits are counted in this process. The service is always up, and there are no
 * outages. Also provides the address of a web handler: the root of its host.
 */
export const memoryLayer: Layer.Layer<
  PromptRepo | KeyStore | MemoryState | RateLimiter | Lifecycle | Outage.Outage | PublicUrl | BasePath
> = Layer.mergeAll(
  Memory.layer,
  InProcessRateLimiter.layer,
  Lifecycle.serving,
  Outage.offLayer,
  addressLayer({})
)

export type { MemoryState } from "./adapters/outbound/memory/MemoryState.ts"
export type { Archive } from "./application/transfer/Archive.ts"
export type { ContractTest, LoadWorkspace } from "./testing/contract.ts"
export { importArchive } from "./testing/importArchive.ts"
export { makeKeyStoreTests } from "./testing/keyStoreTests.ts"
export { makePromptRepoTests } from "./testing/promptRepoTests.ts"
