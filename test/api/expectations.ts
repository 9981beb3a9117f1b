import { expect } from "vitest"
import { getHeader, type HttpResponse } from "../support/clients/rawHttp.ts"

/** Matches the request ids that the service generates. */
export const generatedRequestId = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

type Headers = Readonly<Record<string, string>>

const cacheControl = "public, s-maxage=30, stale-while-revalidate=300"

/** Expects `X-Content-Type-Options` and a generated `X-Request-Id`. */
export const expectCommonHeaders = (response: HttpResponse): void => {
  expect(getHeader(response, "x-content-type-options")).toBe("nosniff")
  expect(getHeader(response, "x-request-id")).toMatch(generatedRequestId)
}

/** Expects a response to have exactly these headers and the headers of every response. */
const expectHeaders = (response: HttpResponse, headers: Headers): void => {
  expectCommonHeaders(response)
  const others = ["connection", "date", "x-content-type-options", "x-request-id"]
  const names = [...others, "vary", ...Object.keys(headers)]
  expect(response.headers.map(([name]) => name).toSorted()).toEqual(names.toSorted())
  expect(Object.fromEntries(response.headers)).toMatchObject({ vary: "Authorization", ...headers })
}

const jsonHeaders = ({ body }: HttpResponse): Headers => ({
  "content-type": "application/json",
  "content-length": String(Buffer.byteLength(body))
})

/** The status, the code, the message and the additional headers that an error must have. */
export type ExpectedError = readonly [status: number, code: string, message: string, headers?: Headers]

/** Expects a response to have the status, the envelope and exactly the headers of this error. */
export const expectError = (
  response: HttpResponse,
  [status, code, message, headers = {}]: ExpectedError
): void => {
  expect({ status: response.status, body: response.body }).toEqual({
    status,
    body: JSON.stringify({ error: { code, message } })
  })
  expectHeaders(response, { "cache-control": "no-store", ...jsonHeaders(response), ...headers })
}

/** Returns the `Prompt-Version` header for a version, and no header for `undefined`. */
const versionHeaders = (version: number | undefined): Headers =>
  version === undefined ? {} : { "prompt-version": String(version) }

/**
 * Expects a 200 with exactly the headers of a successful response. Compares the body only if `body` is given, and
 * expects `Prompt-Version` only if `version` is given.
 */
export const expectSuccess = (response: HttpResponse, body?: unknown, version?: number): void => {
  expect(response.status).toBe(200)
  const etag = expect.stringMatching(/^"[A-Za-z0-9_-]{43}"$/)
  const headers = { "cache-control": cacheControl, etag, ...versionHeaders(version) }
  expectHeaders(response, { ...jsonHeaders(response), ...headers })
  if (body !== undefined) expect(JSON.parse(response.body)).toEqual(body)
}

/** Returns the 401 for a key that the service rejects with this message. */
export const unauthorized = (message: string, challenge = ', error="invalid_token"'): ExpectedError => [
  401,
  "UNAUTHORIZED",
  message,
  { "www-authenticate": `Bearer realm="api"${challenge}` }
]
export const malformedAuthorization = unauthorized("Missing or malformed Authorization header", "")
const badRequestWith = (message: string): ExpectedError => [400, "BAD_REQUEST", message]
export const badRequest = badRequestWith("Bad request")
export const malformedHeader = badRequestWith(
  "Malformed request header: a value, such as an API key, must be on one line"
)
/** Returns the 400 for a query parameter that breaks its rule. */
export const invalidParameter = (name: string, rule: string) => badRequestWith(`${name} ${rule}`)
export const positiveIntRule = "must be an integer from 1 to 9007199254740991"
const notFound = (message: string): ExpectedError => [404, "NOT_FOUND", message]
export const routeNotFound = notFound("Route not found")
export const promptNotFound = notFound("Prompt not found")
export const versionNotFound = notFound("Version not found")
export const methodNotAllowed: ExpectedError = [
  405,
  "METHOD_NOT_ALLOWED",
  "Method not allowed",
  { allow: "GET, HEAD" }
]
export const unknownExpectation: ExpectedError = [417, "BAD_REQUEST", "Unknown expectation"]
export const headersTooLarge: ExpectedError = [431, "HEADERS_TOO_LARGE", "Request headers are too large"]
export const resolvedTooLarge: ExpectedError = [422, "RESOLVED_TOO_LARGE", "Resolved content is too large"]
export const internalError: ExpectedError = [500, "INTERNAL_ERROR", "Internal error"]
export const unavailable: ExpectedError = [
  503,
  "SERVICE_UNAVAILABLE",
  "Service unavailable",
  { "retry-after": "1" }
]
