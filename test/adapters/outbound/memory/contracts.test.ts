import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { testKeyStore } from "../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../contracts/PromptRepo.ts"
import { testWorkspaceStore } from "../../../contracts/WorkspaceStore/contract.ts"

testPromptRepo("memory", Memory.layer)
testKeyStore("memory", Memory.layer)
testWorkspaceStore("memory", Memory.layer)
