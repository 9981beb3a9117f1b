export { type BundledPrompt, BundleError, type PromptBundle, verifyBundle } from "./Bundle.ts"
export * from "./Errors.ts"
export type { Live, LiveOptions } from "./Live.ts"
export type {
  CacheOptions,
  CallOptions,
  ClientOptions,
  PrefetchOptions,
  PrefetchResult,
  ResolvedOptions
} from "./Options.ts"
export { PromptClient } from "./PromptClient.ts"
export type { PromptReference, ResolvedFor, SlotValue, VariablesFor, WithSlots } from "./PromptReference.ts"
export type { Prompts, Versions } from "./Prompts.ts"
export type { ResolvedPrompt } from "./ResolvedPrompt.ts"
export type * from "./Resources.ts"
export { type Call, type List, traceAttributes, type WithResponse } from "./Results.ts"
export type { PromptFilter, PromptSelection } from "./Selection.ts"
export { fillSlots, type Message, MissingVariablesError, toMessage } from "./Slots.ts"
export type * from "./transport/Fetch.ts"
export type { Signal, SignalLike } from "./transport/Limits.ts"
