import { ConnectionError, type ErrorResponse, type PromptClientError, TimeoutError } from "./Errors.ts"

/** Returns the HTTP status of an error, or `undefined` if there was no response. */
export const getStatus = (error: unknown): number | undefined => (error as Partial<ErrorResponse>).status

/** Returns true if a response has a status after which the same request can succeed later. */
export const isTransient = (status: number): boolean => status === 408 || status === 429 || status >= 500

/**
 * Returns true if the service did not decide about the request: no complete response arrived in time, or the response
 * states no decision. Such a response has the status 402 or a transient status, is a redirect, or is a success with an
 * unexpected body. Any other error is a decision, even if a proxy sent the response. The client must not hide a decision
 * behind a substitute text.
 */
export const isOutage = (error: unknown): error is PromptClientError => {
  const status = getStatus(error)
  return status === undefined
    ? error instanceof ConnectionError || error instanceof TimeoutError
    : status < 400 || status === 402 || isTransient(status)
}
