import { afterAll, beforeAll, expect, it } from "vitest"
import { newId, sample } from "../../support/archives.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"
import { exchange, rawRequest } from "../../support/clients/rawHttp.ts"
import type { Service } from "../../support/service.ts"
import {
  expectError,
  invalidKey,
  invalidKeyFormat,
  malformedAuthorization,
  methodNotAllowed,
  routeNotFound,
  unavailable
} from "../expectations.ts"
import { authorize, endpointTargets } from "../startApi.ts"

const authorization = authorize(sample().keys.active.plaintext)

let service: Service
beforeAll(async () => {
  // Nothing listens on port 9.
  const env = { DATABASE_URL: "postgres://postgres@127.0.0.1:9/none" }
  service = await startObservedService(env, "/healthz")
})
afterAll(async () => expect(await service?.stop()).toBe(0))

const send = (target: string, lines: ReadonlyArray<string> = [authorization], method = "GET") =>
  exchange(service.port, rawRequest(target, lines, method))

it.each(Object.entries(endpointTargets(newId())))(
  "the endpoint %s returns 503 while the database is unreachable",
  async (_, target) => {
    expectError(await send(target), unavailable)
  }
)

it("/readyz returns 503 and /healthz returns 200 while the database is unreachable", async () => {
  expectError(await send("/readyz", []), unavailable)
  expect((await send("/healthz", [])).status).toBe(200)
})

it("while the database is unreachable, the service returns errors that need no database as usual", async () => {
  expectError(await send("/nowhere"), routeNotFound)
  expectError(await send("/api/v1/prompts", [authorization], "POST"), methodNotAllowed)
  expectError(await send("/api/v1/prompts", []), malformedAuthorization)
  expectError(await send("/api/v1/prompts", [authorize("x")]), invalidKeyFormat)
  expectError(await send("/api/v1/prompts", [authorize("key_live_0")]), invalidKey)
})
