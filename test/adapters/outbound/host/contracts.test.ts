import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as HostKeyStore from "../../../../src/adapters/outbound/host/HostKeyStore.ts"
import * as HostPromptRepo from "../../../../src/adapters/outbound/host/HostPromptRepo.ts"
import * as Memory from "../../../../src/adapters/outbound/memory/Memory.ts"
import { WorkspaceStore } from "../../../../src/application/ports/WorkspaceStore.ts"
import { testKeyStore } from "../../../contracts/KeyStore.ts"
import { testPromptRepo } from "../../../contracts/PromptRepo.ts"
import { toHostStores } from "../../../support/hostStores.ts"

/** The adapters for stores of a host, over a host that uses the in-memory adapters. */
const host = Layer.unwrap(
  Effect.map(Layer.build(Memory.layer), (services) => {
    const { promptRepo, keyStore } = toHostStores(services)
    return Layer.mergeAll(
      HostPromptRepo.layer(promptRepo),
      HostKeyStore.layer(keyStore),
      Layer.succeed(WorkspaceStore, Context.get(services, WorkspaceStore))
    )
  })
)

testPromptRepo("host", host)
testKeyStore("host", host)
