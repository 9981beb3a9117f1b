export {
  type HostCaller,
  type InProcessPrompts,
  type ListParameters,
  type Paged,
  type PageParameters,
  PromptApiError,
  type Single
} from "./adapters/inbound/embedding/InProcessPrompts.ts"
export type { WebHandler } from "./adapters/inbound/http/transport/WebHandler.ts"
export type { StoreChanges, WatchableStore } from "./adapters/outbound/host/HostChangeFeed.ts"
export { StoreUnavailableError } from "./adapters/outbound/host/HostCalls.ts"
export type { HostKey, HostKeyStore } from "./adapters/outbound/host/HostKeyStore.ts"
export type {
  HostPrompt,
  HostPromptFilter,
  HostPromptRepo,
  HostPromptSource,
  HostPromptSummary,
  HostVersion,
  HostVersionSummary
} from "./adapters/outbound/host/HostPromptRepo.ts"
export type { DatabaseOptions } from "./adapters/outbound/postgres/Database.ts"
export type { RateLimits } from "./application/Admission.ts"
export { administrationLayer } from "./runtime/CommandLayers.ts"
export { changeFeedLayer, databaseLayer, serviceLayer } from "./runtime/RequestLayers.ts"
export { createPromptApi, type PromptApi } from "./runtime/PromptApi.ts"
export type { PromptApiOptions } from "./runtime/PromptApiOptions.ts"
export type { HostLogFields, HostLogger } from "./runtime/telemetry/HostLogger.ts"
