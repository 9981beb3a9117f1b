import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { storeArchive } from "../../../../src/adapters/outbound/memory/MemoryState.ts"
import { makeKeyStoreTests } from "../../../../src/testing/keyStoreTests.ts"
import { makePromptRepoTests } from "../../../../src/testing/promptRepoTests.ts"
import { runContract } from "../../../contracts/runContract.ts"

runContract("PromptRepo: memory", makePromptRepoTests(storeArchive), Memory.layer)
runContract("KeyStore: memory", makeKeyStoreTests(storeArchive), Memory.layer)
