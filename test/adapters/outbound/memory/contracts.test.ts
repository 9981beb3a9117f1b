import * as Layer from "effect/Layer"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { MemoryState, storeArchive } from "../../../../src/adapters/outbound/memory/MemoryState.ts"
import { makeKeyStoreTests } from "../../../../src/testing/keyStoreTests.ts"
import { makePromptRepoTests } from "../../../../src/testing/promptRepoTests.ts"
import { testPromptTitles } from "../../../contracts/PromptTitles.ts"
import { runContract } from "../../../contracts/runContract.ts"
import * as MemoryTitles from "../../../support/database/memoryTitles.ts"

runContract("PromptRepo: memory", makePromptRepoTests(storeArchive), Memory.layer)
testPromptTitles("memory", storeArchive, MemoryTitles.layer.pipe(Layer.provideMerge(MemoryState.layer)))
runContract("KeyStore: memory", makeKeyStoreTests(storeArchive), Memory.layer)
