import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import * as keys from "../../../contracts/KeyStore.ts"
import * as prompts from "../../../contracts/PromptRepo.ts"
import * as workspaces from "../../../contracts/WorkspaceStore.ts"

prompts.contract("memory", Memory.layer)
keys.contract("memory", Memory.layer)
workspaces.contract("memory", Memory.layer)
