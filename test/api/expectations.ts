import { expect } from "vitest"
import { getHeader, type HttpResponse } from "../support/clients/rawHttp.ts"

/** Matches the request ids that the service generates. */
export const generatedRequestId = /^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const commonHeaders = ["connection", "date", "x-content-type-options", "x-request-id"]
const errorHeaders = ["cache-control", "content-length", "content-type", "vary"]
const successHeaders = [...errorHeaders, "etag"]
const cacheControl = "public, s-maxage=30, stale-while-revalidate=300"

const expectHeaders = (
  response: HttpResponse,
  names: ReadonlyArray<string>,
  values: Readonly<Record<string, unknown>>
) => {
  expect(response.headers.map(([name]) => name).toSorted()).toEqual([...commonHeaders, ...names].toSorted())
  expect(Object.fromEntries(response.headers)).toMatchObject(values)
}

/** Expects `X-Content-Type-Options` and a generated `X-Request-Id`. */
export const expectCommonHeaders = (response: HttpResponse): void => {
  expect(getHeader(response, "x-content-type-options")).toBe("nosniff")
  expect(getHeader(response, "x-request-id")).toMatch(generatedRequestId)
}

/** The status, the code, the message and the additional headers that an error must have. */
export type ExpectedError = readonly [
  status: number,
  code: string,
  message: string,
  headers?: Readonly<Record<string, string>>
]

/** Expects a response to have the status, the envelope and exactly the headers of this error. */
export const expectError = (
  response: HttpResponse,
  [status, code, message, headers = {}]: ExpectedError
): void => {
  expectCommonHeaders(response)
  expect({ status: response.status, body: response.body }).toEqual({
    status,
    body: JSON.stringify({ error: { code, message } })
  })
  expectHeaders(response, [...errorHeaders, ...Object.keys(headers)], {
    "cache-control": "no-store",
    vary: "Authorization",
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(response.body)),
    ...headers
  })
}

/** Returns the `Prompt-Version` header for a version, and no header for `undefined`. */
const versionHeaders = (version: number | undefined): Readonly<Record<string, string>> =>
  version === undefined ? {} : { "prompt-version": String(version) }

/**
 * Expects a 200 with exactly the headers of a successful response. Compares the body only if `body` is given, and
 * expects `Prompt-Version` only if `version` is given.
 */
export const expectSuccess = (response: HttpResponse, body?: unknown, version?: number): void => {
  expectCommonHeaders(response)
  expect(response.status).toBe(200)
  expectHeaders(response, [...successHeaders, ...Object.keys(versionHeaders(version))], {
    ...versionHeaders(version),
    "cache-control": cacheControl,
    vary: "Authorization",
    "content-type": "application/json",
    "content-length": String(Buffer.byteLength(response.body)),
    etag: expect.stringMatching(/^"[A-Za-z0-9_-]{43}"$/)
  })
  if (body !== undefined) expect(JSON.parse(response.body)).toEqual(body)
}

/**
 * Expects a 304 with this ETag and exactly the headers of a 304. Expects `Prompt-Version` only if `version` is given.
 */
export const expectNotModified = (response: HttpResponse, etag: string, version?: number): void => {
  expectCommonHeaders(response)
  expect({ status: response.status, body: response.body }).toEqual({ status: 304, body: "" })
  expectHeaders(response, ["cache-control", "etag", "vary", ...Object.keys(versionHeaders(version))], {
    ...versionHeaders(version),
    "cache-control": cacheControl,
    vary: "Authorization",
    etag
  })
}

const challenge = { "www-authenticate": 'Bearer realm="api"' }
const invalidToken = { "www-authenticate": 'Bearer realm="api", error="invalid_token"' }

/** Returns the 401 for a key that the service rejects with this message. */
export const unauthorized = (message: string): ExpectedError => [401, "UNAUTHORIZED", message, invalidToken]

export const malformedAuthorization: ExpectedError = [
  401,
  "UNAUTHORIZED",
  "Missing or malformed Authorization header",
  challenge
]
export const badRequest: ExpectedError = [400, "BAD_REQUEST", "Bad request"]
export const malformedHeader: ExpectedError = [
  400,
  "BAD_REQUEST",
  "Malformed request header: a value, such as an API key, must be on one line"
]
export const routeNotFound: ExpectedError = [404, "NOT_FOUND", "Route not found"]
export const promptNotFound: ExpectedError = [404, "NOT_FOUND", "Prompt not found"]
export const versionNotFound: ExpectedError = [404, "NOT_FOUND", "Version not found"]
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

/** Returns the 400 for a query parameter that breaks its rule. */
export const invalidParameter = (name: string, rule: string): ExpectedError => [
  400,
  "BAD_REQUEST",
  `${name} ${rule}`
]
export const positiveIntRule = "must be an integer from 1 to 9007199254740991"
