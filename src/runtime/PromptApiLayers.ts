import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as HostChangeFeed from "../adapters/outbound/host/HostChangeFeed.ts"
import * as HostKeyStore from "../adapters/outbound/host/HostKeyStore.ts"
import * as HostPromptRepo from "../adapters/outbound/host/HostPromptRepo.ts"
import * as MetricObservations from "../adapters/outbound/metrics/MetricObservations.ts"
import * as PostgresChangeFeed from "../adapters/outbound/postgres/PostgresChangeFeed.ts"
import * as PostgresReadiness from "../adapters/outbound/postgres/PostgresReadiness.ts"
import { Lifecycle } from "../application/Lifecycle.ts"
import * as Outage from "../application/Outage.ts"
import type { KeyStore } from "../application/ports/KeyStore.ts"
import type { PromptRepo } from "../application/ports/PromptRepo.ts"
import { Readiness } from "../application/ports/Readiness.ts"
import { WorkspaceRevisions } from "../application/WorkspaceRevisions.ts"
import {
  databaseKeysLayer,
  databaseLayer,
  databasePromptsLayer,
  type ServiceSettings,
  useCasesLayer
} from "./RequestLayers.ts"
import type { DatabaseStores, HostStores } from "./PromptApiOptions.ts"

// The composition root of `createPromptApi`.

/** Everything that `createPromptApi` uses on a database. A store of the host replaces the one of the database. */
export const databaseApiLayer = (settings: ServiceSettings & DatabaseStores) => {
  const { databaseUrl, databaseFeedUrl, promptRepo, keyStore } = settings
  const database = { url: databaseUrl }
  const revisions = new WorkspaceRevisions()
  const databaseFeed = PostgresChangeFeed.makeLayer(revisions, databaseFeedUrl)
  const hostStores = [promptRepo, keyStore].filter((store) => store !== undefined)
  const prompts: Layer.Layer<PromptRepo, never, Layer.Services<typeof databasePromptsLayer>> = promptRepo ===
  undefined
    ? databasePromptsLayer
    : HostPromptRepo.layer(promptRepo)
  const keys: Layer.Layer<KeyStore, never, Layer.Services<typeof databaseKeysLayer>> = keyStore === undefined
    ? databaseKeysLayer
    : HostKeyStore.layer(keyStore)
  const feed = HostChangeFeed.layer(hostStores, revisions).pipe(Layer.provide(databaseFeed))
  const outage = Outage.layer(settings.outageMaxAgeMs ?? 0).pipe(Layer.provide(feed))
  return useCasesLayer(settings).pipe(
    Layer.provide([prompts, keys]),
    // Responses depend on all stores, the caches of the database's stores on the database alone.
    Layer.provide(databaseFeed),
    Layer.provideMerge(outage),
    Layer.provideMerge(Layer.mergeAll(MetricObservations.layer, PostgresReadiness.layer, feed)),
    Layer.provideMerge(Layer.merge(databaseLayer(database), Lifecycle.starting))
  )
}

/** Everything that `createPromptApi` uses without a database, on stores of the host. */
export const hostApiLayer = (settings: ServiceSettings & HostStores) => {
  const { promptRepo, keyStore } = settings
  const revisions = new WorkspaceRevisions()
  const feed = HostChangeFeed.layer([promptRepo, keyStore], revisions).pipe(
    Layer.provide(HostChangeFeed.localLayer(revisions))
  )
  const readiness = Layer.succeed(Readiness, { check: Effect.void })
  return useCasesLayer(settings).pipe(
    Layer.provide([HostPromptRepo.layer(promptRepo), HostKeyStore.layer(keyStore)]),
    Layer.provideMerge(Outage.layer(settings.outageMaxAgeMs ?? 0)),
    Layer.provideMerge(Layer.mergeAll(MetricObservations.layer, feed, readiness, Lifecycle.serving))
  )
}
