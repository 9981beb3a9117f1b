import { afterAll, beforeAll, expect, it } from "vitest"
import { makeTenant, newId } from "../../support/archives.ts"
import { exchange, rawRequest } from "../../support/clients/rawHttp.ts"
import { type Service, startService } from "../../support/services/startService.ts"
import { expectError, unavailable } from "../expectations.ts"
import { authorize, endpointTargets } from "../startApi.ts"
import { expectDocumented } from "./document.ts"

let withoutDatabase: Service
beforeAll(async () => {
  // Nothing listens on port 1.
  withoutDatabase = await startService({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" }, "/healthz")
})
afterAll(async () => expect(await withoutDatabase?.stop()).toBe(0))

it("the response to GET /openapi.json without a key matches the OpenAPI document", async () => {
  const response = await exchange(withoutDatabase.port, rawRequest("/openapi.json"))
  expect(response.status).toBe(200)
  expectDocumented("/openapi.json", response)
})

it.each(Object.entries({ ...endpointTargets(newId()), readyz: "/readyz" }))(
  "while the database is unreachable, the endpoint %s returns a 503 that matches the OpenAPI document",
  async (_, target) => {
    const authorization = authorize(makeTenant().key.plaintext)
    const response = await exchange(withoutDatabase.port, rawRequest(target, [authorization]))
    expectError(response, unavailable)
    expectDocumented(target, response)
  }
)
