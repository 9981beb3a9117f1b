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
export type { DatabaseOptions } from "./adapters/outbound/postgres/Database.ts"
export type { RateLimits } from "./application/Admission.ts"
export { administrationLayer, changeFeedLayer, databaseLayer, serviceLayer } from "./runtime/Layers.ts"
export { createPromptApi, type PromptApi } from "./runtime/PromptApi.ts"
