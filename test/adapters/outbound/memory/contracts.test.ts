import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { testFileImport } from "../../../contracts/FileImport.ts"
import { testKeyStore } from "../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../contracts/PromptRepo.ts"
import { testPromptTitles } from "../../../contracts/PromptTitles.ts"
import { testWorkspaceStore } from "../../../contracts/WorkspaceStore/contract.ts"

testPromptRepo("memory", Memory.layer)
testPromptTitles("memory", Memory.layer)
testKeyStore("memory", Memory.layer)
testWorkspaceStore("memory", Memory.layer)
testFileImport("memory", Memory.layer)
