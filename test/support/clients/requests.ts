import { expect } from "vitest"
import type { Service } from "../service.ts"

/** The outcome of a request. */
export interface Outcome {
  /** `closed`: the connection ended without a response. */
  readonly status: number | "closed"
  /** `error.code` of an error envelope, "data" for any other response, or undefined without a response. */
  readonly code: string | undefined
  readonly body: string
}

/** Sends one request, over a connection that may be reused. */
export const send = async (
  service: Pick<Service, "url">,
  path: string,
  authorization?: string,
  method = "GET"
): Promise<Outcome> => {
  const headers = authorization === undefined ? {} : { authorization }
  const response = await fetch(service.url + path, { method, headers }).catch(() => undefined)
  const body = await response?.text().catch(() => undefined)
  return response === undefined || body === undefined
    ? { status: "closed", code: undefined, body: "" }
    : { status: response.status, code: JSON.parse(body).error?.code ?? "data", body }
}

/** Expects every request to get a response with one of these codes, or a closed connection. */
export const expectCodes = (outcomes: ReadonlyArray<Outcome>, codes: ReadonlyArray<string>): void =>
  expect(outcomes.filter(({ status, code }) => status !== "closed" && !codes.includes(code!))).toEqual([])

/** Expects requests that need no database to get their usual responses. */
export const expectBystandersUnaffected = async (service: Service): Promise<void> => {
  const health = await fetch(`${service.url}/healthz`)
  await health.arrayBuffer()
  const path = "/api/v1/prompts"
  const outcomes = [
    await send(service, "/nowhere"),
    await send(service, path, undefined, "POST"),
    await send(service, path),
    await send(service, path, "Bearer other_live_0"),
    await send(service, path, "Bearer key_live_0")
  ]
  expect([health.status, ...outcomes.map(({ status }) => status)]).toEqual([200, 404, 405, 401, 401, 401])
}

/** Sends a request until its response is 200. */
export const waitUntilOk = (service: Service, path: string, authorization: string): Promise<void> =>
  expect.poll(async () => (await send(service, path, authorization)).status, { interval: 20 }).toBe(200)

let requests = 0

/** Adds a query that no earlier request had, so that the response cache cannot serve the request. */
export const uncachedPath = (path: string): string =>
  `${path}${path.includes("?") ? "&" : "?"}uncached=${requests++}`
