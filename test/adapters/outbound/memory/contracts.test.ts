import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { makeKeyStoreTests } from "../../../../src/testing/keyStoreTests.ts"
import { makePromptRepoTests } from "../../../../src/testing/promptRepoTests.ts"
import { runContract } from "../../../contracts/runContract.ts"

runContract("PromptRepo: memory", makePromptRepoTests(Memory.storeArchive), Memory.layer)
runContract("KeyStore: memory", makeKeyStoreTests(Memory.storeArchive), Memory.layer)
