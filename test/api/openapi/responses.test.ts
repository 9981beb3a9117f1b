import { Ajv2020 } from "ajv/dist/2020.js"
import { afterAll, beforeAll, expect, it } from "vitest"
import { fragment, fragmentBinding, makeTenant, newId, prompt, sample } from "../../support/archives.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"
import { exchange, rawRequest } from "../../support/clients/rawHttp.ts"
import type { Service } from "../../support/service.ts"
import { expectError, unavailable } from "../expectations.ts"
import { authorize, endpointTargets, makeDemoTenant, startApi } from "../startApi.ts"
import { deref, document, type Json } from "./document.ts"

const perKey = 60

const home = sample()
const [greeting] = home.archive.prompts
const megabyte = fragment("x".repeat(1024 * 1024))
const large = prompt({
  fragments: Array.from({ length: 9 }, (_, position) => fragmentBinding(megabyte, position))
})
const demo = makeDemoTenant()

const free = makeTenant({ workspace: { tier: "free" } })
const disputed = makeTenant({ workspace: { billing_status: "disputed" } })
const pastDue = makeTenant({ workspace: { billing_status: "past_due" } })

const api = startApi(
  [
    demo.archive,
    {
      ...home.archive,
      fragments: [...home.archive.fragments, megabyte],
      prompts: [...home.archive.prompts, large]
    },
    free.archive,
    disputed.archive,
    pastDue.archive
  ],
  { env: { RATE_LIMIT_PER_KEY: String(perKey) } }
)
let withoutDatabase: Service

/** Returns a copy of a schema that rejects every field that the schema does not define. */
const closeObjects = (part: Json): Json => {
  if (Array.isArray(part)) return part.map(closeObjects)
  if (typeof part !== "object" || part === null) return part
  const closed = Object.fromEntries(Object.entries(part).map(([key, value]) => [key, closeObjects(value)]))
  return part.type === "object" && part.properties !== undefined
    ? { ...closed, additionalProperties: false }
    : closed
}

beforeAll(async () => {
  // Nothing listens on port 1.
  withoutDatabase = await startObservedService(
    { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" },
    "/healthz"
  )
})
afterAll(async () => expect(await withoutDatabase?.stop()).toBe(0))

const activeKey = home.keys.active.plaintext
const stored = `/api/v1/prompts/${greeting!.id}`

interface SendOptions {
  readonly authorization?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly method?: string
  readonly to?: string
}

const send = (
  target: string,
  {
    authorization = `Bearer ${activeKey}`,
    headers = {},
    method = "GET",
    to = api.service().url
  }: SendOptions = {}
): Promise<Response> =>
  fetch(to + target, { method, headers: authorization === "" ? headers : { authorization, ...headers } })

const ajv = new Ajv2020({ strict: false, validateFormats: false })

/** Returns true if a value matches a schema of the document and has only the fields of that schema. */
const matches = (schema: Json, value: unknown): boolean =>
  ajv.validate(closeObjects({ ...schema, components: { schemas: document.components.schemas } }), value)

const findOperation = (target: string): Json => {
  const path = target.split("?")[0]!
  const template = Object.keys(document.paths).find((template) =>
    new RegExp(`^${template.replaceAll(/\{\w+\}/g, "[^/]+")}$`).test(path)
  )!
  return document.paths[template].get
}

/** General HTTP headers, which the document does not describe. */
const transportHeaders = ["connection", "content-length", "content-type", "date", "keep-alive"]

/**
 * Returns the status of a response, and in `violations` the parts that do not match the document: "status", "body" or
 * names of headers. A header that the document does not describe is also a violation.
 */
const findViolations = async (target: string, response: Response) => {
  const documented = findOperation(target).responses[response.status]
  if (documented === undefined) return { status: response.status, violations: ["status"] }
  const { headers, content } = deref(documented)
  const violations = Object.entries<Json>(headers).flatMap(([name, { required, schema }]) => {
    const text = response.headers.get(name)
    const isValid =
      text === null ? !required : matches(schema, schema.type === "integer" ? Number(text) : text)
    return isValid ? [] : [name]
  })
  const described = [...transportHeaders, ...Object.keys(headers).map((name) => name.toLowerCase())]
  violations.push(...[...response.headers.keys()].filter((name) => !described.includes(name)))
  const body = await response.text()
  const media = content?.["application/json"]
  if (media === undefined ? body !== "" : !matches(media.schema, JSON.parse(body))) violations.push("body")
  return { status: response.status, violations }
}

const missing = `/api/v1/prompts/${newId()}`
const { revoked } = home.keys

/** The status that each request must get, the target, and the options of the request. */
const requests: ReadonlyArray<readonly [status: number, target: string, options?: SendOptions]> = [
  [200, "/api/v1/prompts"],
  [200, "/api/v1/prompts?page=1&per_page=100"],
  [200, stored],
  [200, `${stored}/resolved`],
  [200, `${stored}/versions`],
  [200, `${stored}/versions/1`],
  [304, stored, { headers: { "if-none-match": "*", "x-request-id": "custom" } }],
  [400, "/api/v1/prompts?page=0"],
  [400, "/api/v1/prompts?folder_id=1"],
  [400, "/api/v1/prompts?type=System"],
  [400, `${stored}/versions?page=0`],
  [401, stored, { authorization: "" }],
  [401, stored, { authorization: `Bearer ${revoked.plaintext}` }],
  [402, stored, { authorization: `Bearer ${disputed.key.plaintext}` }],
  [402, stored, { authorization: `Bearer ${pastDue.key.plaintext}` }],
  [403, stored, { authorization: `Bearer ${free.key.plaintext}` }],
  [404, missing],
  [404, `${missing}/resolved`],
  [404, `${missing}/versions`],
  [404, `${missing}/versions/1`],
  [404, `${stored}/versions/4`],
  [405, stored, { method: "DELETE" }],
  [422, `/api/v1/prompts/${large.id}/resolved`]
]

it.each(requests.map(([status, target, options = {}]) => ({ status, target, options })))(
  "the $status response to $target matches the OpenAPI document",
  async ({ status, target, options }) => {
    expect(await findViolations(target, await send(target, options))).toEqual({ status, violations: [] })
  }
)

it("a 429 response matches the OpenAPI document", async () => {
  const authorization = `Bearer ${home.keys.second.plaintext}`
  // One of these requests exceeds the limit, even if a new minute starts between two of them.
  for (let i = 0; i <= 2 * perKey; i++) {
    const found = await findViolations(stored, await send(stored, { authorization }))
    if (found.status === 200) continue
    return expect(found).toEqual({ status: 429, violations: [] })
  }
  expect.fail("the limit was never exceeded")
})

it.each(["/healthz", "/readyz", "/openapi.json"])(
  "the response to GET %s without a key matches the OpenAPI document",
  async (path) => {
    expect(await findViolations(path, await send(path, { authorization: "" }))).toEqual({
      status: 200,
      violations: []
    })
  }
)

it.each(Object.entries({ ...endpointTargets(greeting!.id), readyz: "/readyz" }))(
  "while the database is unreachable, the endpoint %s returns a 503 that matches the OpenAPI document",
  async (_, target) => {
    const lines = [authorize(activeKey)]
    expectError(await exchange(withoutDatabase.port, rawRequest(target, lines)), unavailable)
    const response = await send(target, { to: withoutDatabase.url })
    expect(await findViolations(target, response)).toEqual({ status: 503, violations: [] })
  }
)

it("the examples of each field of a prompt, and of each path parameter, are values of the demo workspace", async () => {
  const { parameters } = document.paths["/api/v1/prompts/{id}/versions/{version}"].get
  const examples = Object.fromEntries(
    parameters.map(({ name, examples }: Json) => [name, examples?.default.value])
  )
  const path = `/api/v1/prompts/${examples.id}`
  const read = async (target: string) =>
    ((await (await send(target, { authorization: `Bearer ${demo.key}` })).json()) as Json).data
  const { schemas } = document.components
  const promptOfDemo = await read(path)
  const pairs: ReadonlyArray<readonly [schema: Json, found: Json]> = [
    [schemas.Prompt, promptOfDemo],
    [schemas.Tag, promptOfDemo.tags[0]],
    [schemas.Version, await read(`${path}/versions/${examples.version}`)]
  ]
  for (const [schema, found] of pairs)
    for (const [name, { type, format, examples }] of Object.entries<Json>(schema.properties))
      if (type === "string" && format === undefined && examples !== undefined)
        expect(
          examples.some((example: string) => found[name].startsWith(example)),
          name
        ).toBe(true)
})
