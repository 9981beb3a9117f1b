import { expect } from "vitest"
import type { Service } from "../services/startService.ts"

/** Sends one request over a new or an idle connection. */
export const send = async (
  service: Pick<Service, "url">,
  path: string,
  authorization?: string,
  method = "GET"
) => {
  const headers = authorization === undefined ? {} : { authorization }
  const response = await fetch(service.url + path, { method, headers })
  return { status: response.status, body: await response.text() }
}

/** Expects the usual responses to requests that need no database. */
export const expectBystandersUnaffected = async (service: Service): Promise<void> => {
  const path = "/api/v1/prompts"
  const responses = [
    await send(service, "/healthz"),
    await send(service, "/nowhere"),
    await send(service, path, undefined, "POST"),
    await send(service, path),
    await send(service, path, "Bearer other_live_0"),
    await send(service, path, "Bearer key_live_0")
  ]
  expect(responses.map(({ status }) => status)).toEqual([200, 404, 405, 401, 401, 401])
}

let requests = 0

/** Adds a query that no earlier request had, so that the response cache cannot serve the request. */
export const uncachedPath = (path: string): string =>
  `${path}${path.includes("?") ? "&" : "?"}uncached=${requests++}`
