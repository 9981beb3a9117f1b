export type { CacheOptions } from "./Cache.ts"
export {
  AbortError,
  ApiNotAllowedError,
  BadRequestError,
  ConnectionError,
  DisputedError,
  type ErrorAnswer,
  type ErrorResponse,
  HeadersTooLargeError,
  InternalServerError,
  InvalidResponseError,
  MethodNotAllowedError,
  NotFoundError,
  PastDueError,
  PromptApiError,
  PromptClientError,
  RateLimitedError,
  RequestTimeoutError,
  ServiceUnavailableError,
  TimeoutError,
  /** @deprecated Use a class's constructor. */
  toApiError as apiErrorOf,
  UnauthorizedError
} from "./Errors.ts"
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
