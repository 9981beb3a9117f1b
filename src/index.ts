export {
  type HostCaller,
  type InProcessPrompts,
  type ListParameters,
  type Paged,
  type PageParameters,
  PromptApiError,
  type Single
} from "./adapters/inbound/embedding/InProcessPrompts.ts"
export { makeWebHandler, toNodeListener, type WebHandler } from "./adapters/inbound/http/WebHandler.ts"
export type { DatabaseOptions } from "./adapters/outbound/postgres/Database.ts"
export type { RateLimits } from "./application/Admission.ts"
export {
  changeFeedLayer,
  databaseLayer,
  ownStoresLayer,
  serviceLayer
} from "./runtime/layers/ServiceLayers.ts"
export { createPromptApi, type PromptApi } from "./runtime/PromptApi.ts"
export type { PromptApiOptions } from "./runtime/PromptApiOptions.ts"
export type { HostLogFields, HostLogger } from "./runtime/telemetry/HostLogger.ts"
