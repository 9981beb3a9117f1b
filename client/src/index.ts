export type { CacheOptions } from "./Cache.ts"
export * from "./Errors.ts"
export type { Signal, SignalLike } from "./Limits.ts"
export {
  type CallOptions,
  type ClientOptions,
  type List,
  PromptClient,
  type Prompts,
  type Versions
} from "./PromptClient.ts"
export type * from "./Resources.ts"
export { fillSlots, MissingVariablesError } from "./Slots.ts"
export type { Fetch, FetchInit, FetchResponse, LogFields, Logger } from "./Transport.ts"
