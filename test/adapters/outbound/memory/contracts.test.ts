import * as Layer from "effect/Layer"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { MemoryState, storeArchive } from "../../../../src/adapters/outbound/memory/MemoryState.ts"
import { testKeyStore } from "../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../contracts/PromptRepo.ts"
import { testPromptTitles } from "../../../contracts/PromptTitles.ts"
import * as MemoryTitles from "../../../support/database/memoryTitles.ts"

testPromptRepo("memory", storeArchive, Memory.layer)
testPromptTitles("memory", storeArchive, MemoryTitles.layer.pipe(Layer.provideMerge(MemoryState.layer)))
testKeyStore("memory", storeArchive, Memory.layer)
