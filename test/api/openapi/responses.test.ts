import { afterAll, beforeAll, expect, it } from "vitest"
import { exchange, rawRequest } from "../../support/clients/rawHttp.ts"
import { type Service, startService } from "../../support/service.ts"
import { expectError, unavailable } from "../expectations.ts"
import { authorize, endpointTargets, startDemoApi } from "../startApi.ts"
import { expectDocumented } from "./document.ts"

const { archive, key, send } = startDemoApi()

it("the response to GET /openapi.json without a key matches the OpenAPI document", async () => {
  expect((await send("/openapi.json", [])).status).toBe(200)
})

let withoutDatabase: Service
beforeAll(async () => {
  // Nothing listens on port 1.
  withoutDatabase = await startService({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" }, "/healthz")
})
afterAll(async () => expect(await withoutDatabase?.stop()).toBe(0))

it.each(Object.entries({ ...endpointTargets(archive.prompts[0]!.id), readyz: "/readyz" }))(
  "while the database is unreachable, the endpoint %s returns a 503 that matches the OpenAPI document",
  async (_, target) => {
    const response = await exchange(withoutDatabase.port, rawRequest(target, [authorize(key)]))
    expectError(response, unavailable)
    expectDocumented(target, response)
  }
)
