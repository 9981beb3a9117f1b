import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { storeArchive } from "../../../../src/adapters/outbound/memory/MemoryState.ts"
import { testKeyStore } from "../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../contracts/PromptRepo.ts"
import { testPromptTitles } from "../../../contracts/PromptTitles.ts"

testPromptRepo("memory", storeArchive, Memory.layer)
testPromptTitles("memory", storeArchive, Memory.layer)
testKeyStore("memory", storeArchive, Memory.layer)
