import { afterAll, beforeAll, expect, it } from "vitest"
import { exchange, rawRequest } from "../../support/clients/rawHttp.ts"
import { type Service, startService } from "../../support/service.ts"
import { expectError, unavailable } from "../expectations.ts"
import { authorize, endpointTargets, startDemoApi } from "../startApi.ts"
import { document, expectDocumented, type Json } from "./document.ts"

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

it("the examples of each field of a prompt, and of each path parameter, are values of the demo workspace", async () => {
  const { parameters } = document.paths["/api/v1/prompts/{id}/versions/{version}"].get
  const [id, version] = parameters
    .filter(({ in: place }: Json) => place === "path")
    .map(({ examples }: Json) => examples.default.value)
  const path = `/api/v1/prompts/${id}`
  const read = async (target: string): Promise<Json> =>
    JSON.parse((await send(target, [authorize(key)])).body).data
  const { schemas } = document.components
  const prompt = await read(path)
  const pairs: ReadonlyArray<readonly [schema: Json, found: Json]> = [
    [schemas.Prompt, prompt],
    [schemas.Tag, prompt.tags[0]],
    [schemas.Version, await read(`${path}/versions/${version}`)]
  ]
  for (const [schema, found] of pairs)
    for (const [name, { type, format, examples }] of Object.entries<Json>(schema.properties))
      if (type === "string" && format === undefined && examples !== undefined)
        expect(
          examples.some((example: string) => found[name].startsWith(example)),
          name
        ).toBe(true)
})
