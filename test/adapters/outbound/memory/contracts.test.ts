import { assert, describe, it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { State } from "../../../../src/adapters/outbound/memory/MemoryState.ts"
import { KeyStore } from "../../../../src/application/ports/KeyStore.ts"
import { WorkspaceStore } from "../../../../src/application/ports/WorkspaceStore.ts"
import * as KeyStoreContract from "../../../contracts/KeyStore.ts"
import * as PromptRepoContract from "../../../contracts/PromptRepo.ts"
import * as WorkspaceStoreContract from "../../../contracts/WorkspaceStore.ts"
import { sample, toPartStream } from "../../../support/archives.ts"

PromptRepoContract.contract("memory", Memory.layer)
KeyStoreContract.contract("memory", Memory.layer)
WorkspaceStoreContract.contract("memory", Memory.layer)

describe("memory", () => {
  it.effect("starts without any workspace", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* (yield* WorkspaceStore).workspaces, [])
    }).pipe(Effect.provide(Memory.layer))
  )

  it.effect("holds the time at which a key was last used", () =>
    Effect.gen(function* () {
      const { archive, keys } = sample()
      const { importWorkspace } = yield* WorkspaceStore
      const { markUsed } = yield* KeyStore
      const { lastUsed } = yield* State
      yield* importWorkspace(toPartStream(archive))
      assert.strictEqual(lastUsed.get(keys.active.stored.id), undefined)
      markUsed(keys.active.stored.id, 1_767_225_600_000)
      markUsed(keys.active.stored.id, 1_767_225_660_001)
      assert.strictEqual(lastUsed.get(keys.active.stored.id), 1_767_225_660_001)
      assert.strictEqual(lastUsed.get(keys.second.stored.id), undefined)
    }).pipe(Effect.provide(Memory.layer))
  )
})
