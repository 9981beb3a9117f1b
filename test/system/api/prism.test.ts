import { afterAll, beforeAll, expect, it } from "vitest"
import demo from "../../../src/demo/workspace.json" with { type: "json" }
import type { Archive } from "../../../src/application/formats/Archive.ts"
import { PromptType } from "../../../src/domain/Prompt.ts"
import { fragment, key, newId, prompt, sample, fragmentBinding } from "../../support/archives.ts"
import { connectTo, embedded, makeResources } from "../../support/database.ts"
import { startObservedService } from "../../support/startObservedService.ts"
import { prism, type Violation, parseViolations } from "../../support/prism.ts"
import type { Service } from "../../support/service.ts"
import { toStrictOpenApi } from "../../support/strictOpenApi.ts"
import { makeTenant } from "../../api/startApi.ts"

// biome-ignore lint/suspicious/noExplicitAny: the tests read arbitrary parts of a document
type Json = any

const perKey = 60

const home = sample()
const [greeting] = home.archive.prompts
const megabyte = fragment("x".repeat(1024 * 1024))
const large = prompt({
  fragments: Array.from({ length: 9 }, (_, position) => fragmentBinding(megabyte, position))
})
const foreign = sample()
const demoArchive = demo as unknown as Archive
const demoKey = key(demoArchive.workspace.id, demoArchive.users[0]!)

const free = makeTenant({ tier: "free" })
const disputed = makeTenant({ billing_status: "disputed" })
const pastDue = makeTenant({ billing_status: "past_due" })

const resources = makeResources()
let service: Service
let withoutDatabase: Service
/** The document of the service, and a copy that allows no fields or codes of later versions. */
let openApi: Json
let strictOpenApi: Json
let proxy: string

const read = async (url: string): Promise<Json> => (await fetch(url)).json()

beforeAll(async () => {
  const env = await resources.acquire(embedded.acquire)
  // Nothing listens on port 1.
  withoutDatabase = await startObservedService(
    { DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" },
    "/healthz"
  )
  service = await startObservedService({
    ...env,
    RATE_LIMIT_PER_KEY: String(perKey),
    RATE_LIMIT_PER_PROCESS: "100000"
  })
  const database = await resources.acquire(connectTo(env))
  for (const tenant of [
    { ...demoArchive, api_keys: [demoKey.stored] },
    {
      ...home.archive,
      fragments: [...home.archive.fragments, megabyte],
      prompts: [...home.archive.prompts, large]
    },
    foreign.archive,
    free.archive,
    disputed.archive,
    pastDue.archive
  ])
    await database.importArchive(tenant)
  openApi = await read(`${service.url}/openapi.json`)
  strictOpenApi = toStrictOpenApi(openApi)
  proxy = await resources.acquire(prism(strictOpenApi, service.url))
})

afterAll(async () => {
  await service?.stop()
  await withoutDatabase?.stop()
  await resources.release()
})

const activeKey = home.keys.active.plaintext
const stored = `/api/v1/prompts/${greeting!.id}`

interface SendOptions {
  readonly authorization?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly through?: string
}

const send = (
  target: string,
  { authorization = `Bearer ${activeKey}`, headers = {}, through = proxy }: SendOptions = {}
): Promise<Response> =>
  fetch(through + target, { headers: authorization === "" ? headers : { authorization, ...headers } })

/** The violations that a proxy reports: where a request breaks the document, and how a response does. */
const findViolations = async (response: Response) => {
  await response.arrayBuffer()
  const violations = parseViolations(response)
  const locate = (side: Violation["location"][0]) =>
    violations.filter(({ location }) => location[0] === side).map(({ location }) => location.join("."))
  return {
    status: response.status,
    request: [...new Set(locate("request"))],
    response: violations.filter(({ location }) => location[0] === "response")
  }
}

const missing = `/api/v1/prompts/${newId()}`
const hidden = `/api/v1/prompts/${foreign.archive.prompts[0]!.id}`
const { revoked, ownerMustReset, legacy } = home.keys

/** Requests by the status of their responses: the target, the token or header, and where the request is invalid. */
const requests: ReadonlyArray<
  readonly [status: number, target: string, options?: SendOptions, violations?: ReadonlyArray<string>]
> = [
  [200, "/api/v1/prompts"],
  [200, "/api/v1/prompts?page=1&per_page=100"],
  [200, "/api/v1/prompts?per_page=9007199254740991"],
  [200, "/api/v1/prompts?page=9007199254740991"],
  [200, "/api/v1/prompts?tag=gr%C3%B6%C3%9Fe"],
  [200, "/api/v1/prompts?tag="],
  [200, "/api/v1/prompts?another=parameter"],
  [200, `/api/v1/prompts?folder_id=${newId()}`],
  [200, `/api/v1/prompts?folder_id=${newId().toUpperCase()}`],
  ...PromptType.literals.map((type) => [200, `/api/v1/prompts?type=${type}`] as const),
  [200, stored],
  [200, `/api/v1/prompts/${greeting!.id.toUpperCase()}`],
  [200, `${stored}/resolved`],
  [200, `${stored}/versions`],
  [200, `${stored}/versions?page=2&per_page=2`],
  [200, `${stored}/versions/1`],
  [200, `${stored}/versions/3`],
  [304, stored, { headers: { "if-none-match": "*", "x-request-id": "custom" } }],
  [400, "/api/v1/prompts?page=0", {}, ["request.query.page"]],
  [400, "/api/v1/prompts?page=two", {}, ["request.query.page"]],
  [400, "/api/v1/prompts?page=1&page=2", {}, ["request.query.page"]],
  [400, "/api/v1/prompts?per_page=-1", {}, ["request.query.per_page"]],
  [400, "/api/v1/prompts?per_page=1.5", {}, ["request.query.per_page"]],
  [400, "/api/v1/prompts?folder_id=1", {}, ["request.query.folder_id"]],
  [400, "/api/v1/prompts?type=System", {}, ["request.query.type"]],
  [400, `${stored}/versions?page=0`, {}, ["request.query.page"]],
  // Prism treats an empty parameter as absent.
  [400, "/api/v1/prompts?folder_id="],
  [400, "/api/v1/prompts?type="],
  [401, stored, { authorization: "" }, ["request"]],
  [401, stored, { authorization: "Basic Zm9vOmJhcg==" }, ["request"]],
  [401, stored, { authorization: "Bearer sk-1" }],
  [401, stored, { authorization: `Bearer key_live_${"0".repeat(64)}` }],
  [401, stored, { authorization: `Bearer ${revoked.plaintext}` }],
  [401, stored, { authorization: `Bearer ${ownerMustReset.plaintext}` }],
  [401, stored, { authorization: `Bearer ${legacy.plaintext}` }],
  [402, stored, { authorization: `Bearer ${disputed.key}` }],
  [402, stored, { authorization: `Bearer ${pastDue.key}` }],
  [403, stored, { authorization: `Bearer ${free.key}` }],
  [404, missing],
  [404, `${missing}/resolved`],
  [404, `${missing}/versions`],
  [404, `${missing}/versions/1`],
  [404, hidden],
  [404, `${stored}/versions/4`],
  [404, `${stored}/versions/0`, {}, ["request.path.version"]],
  [404, `${stored}/versions/2147483648`, {}, ["request.path.version"]],
  [404, `${stored}/versions/one`, {}, ["request.path.version"]],
  [404, "/api/v1/prompts/greeting", {}, ["request.path.id"]],
  [404, "/api/v1/prompts/a%20b", {}, ["request.path.id"]],
  [422, `/api/v1/prompts/${large.id}/resolved`]
]

it.each(
  requests.map(([status, target, options = {}, request = []]) => ({ status, target, options, request }))
)("a $status matches the OpenAPI document: GET $target", async ({ status, target, options, request }) => {
  expect(await findViolations(await send(target, options))).toEqual({ status, request, response: [] })
})

it("a 304 for a weak ETag matches the OpenAPI document", async () => {
  const etag = (await send(stored)).headers.get("etag")!
  const response = await send(stored, { headers: { "if-none-match": `W/${etag}` } })
  expect(await findViolations(response)).toEqual({ status: 304, request: [], response: [] })
})

it("a 429 matches the OpenAPI document", async () => {
  const authorization = `Bearer ${home.keys.second.plaintext}`
  // Even if a minute ends meanwhile, one of these requests exceeds the limit.
  for (let i = 0; i <= 2 * perKey; i++) {
    const found = await findViolations(await send(stored, { authorization }))
    if (found.status === 200) continue
    return expect(found).toEqual({ status: 429, request: [], response: [] })
  }
  expect.fail("the limit was never exceeded")
})

it.each(["/healthz", "/readyz", "/openapi.json"])(
  "GET %s without a key matches the OpenAPI document",
  async (path) => {
    expect(await findViolations(await send(path, { authorization: "" }))).toEqual({
      status: 200,
      request: [],
      response: []
    })
  }
)

it("a 503 of every endpoint and of /readyz matches the OpenAPI document", async () => {
  const through = await resources.acquire(prism(strictOpenApi, withoutDatabase.url))
  const targets = [
    "/api/v1/prompts",
    stored,
    `${stored}/resolved`,
    `${stored}/versions`,
    `${stored}/versions/1`,
    "/readyz"
  ]
  for (const target of targets)
    expect(await findViolations(await send(target, { through }))).toEqual({
      status: 503,
      request: [],
      response: []
    })
})

it("the proxy reports a body, a header and a status that do not match the OpenAPI document", async () => {
  const planted = structuredClone(strictOpenApi)
  planted.components.schemas.ResolvedPrompt.properties.fragment_count = { type: "string" }
  const operation = planted.paths["/api/v1/prompts/{id}"].get
  operation.responses[200].headers.ETag.schema.pattern = "^none$"
  delete planted.paths["/api/v1/prompts"].get.responses[401]
  const through = await resources.acquire(prism(planted, service.url))
  const findLocations = async (target: string, options: SendOptions = {}) => {
    const { response } = await findViolations(await send(target, { ...options, through }))
    return response.map(({ location }) => location.join("."))
  }
  expect(await findLocations(`${stored}/resolved`)).toEqual(["response.body.data.fragment_count"])
  expect(await findLocations(stored)).toEqual(["response.header.etag"])
  const authorization = "Bearer sk-1"
  expect(await findLocations("/api/v1/prompts", { authorization })).toEqual(["response"])
})

it("the proxy reports a field and an error code that the OpenAPI document does not name only if the document is made strict", async () => {
  const planted = structuredClone(openApi)
  const { ResolvedPrompt, NotFound } = planted.components.schemas
  delete ResolvedPrompt.properties.fragment_count
  ResolvedPrompt.required = ResolvedPrompt.required.filter((name: string) => name !== "fragment_count")
  NotFound.properties.error.properties.code.examples = ["GONE"]
  const findMessages = async (document: Json, target: string) => {
    const through = await resources.acquire(prism(document, service.url))
    const { response } = await findViolations(await send(target, { through }))
    return response.map(({ location, message }) => `${location.join(".")}: ${message}`)
  }
  for (const target of [`${stored}/resolved`, missing])
    expect(await findMessages(planted, target)).toEqual([])
  const strict = toStrictOpenApi(planted)
  expect(await findMessages(strict, `${stored}/resolved`)).toEqual([
    expect.stringContaining("fragment_count")
  ])
  expect(await findMessages(strict, missing)).toEqual([expect.stringContaining("response.body.error.code")])
})

/** Returns the example of a parameter or a body, which the page starts from. */
const getExample = ({ examples }: Json): string => examples.default.value

it("the examples of the document are the responses of the demo workspace", async () => {
  const operations = Object.entries<Json>(openApi.paths).filter(([path]) => path.startsWith("/api/v1/"))
  for (const [path, { get }] of operations) {
    const example = getExample(get.responses[200].content["application/json"])
    const target = get.parameters
      .filter((parameter: Json) => parameter.in === "path")
      .reduce(
        (path: string, parameter: Json) => path.replace(`{${parameter.name}}`, getExample(parameter)),
        path
      )
    const { meta } = example as Json
    const query = meta === undefined ? "" : `?page=${meta.page}&per_page=${meta.per_page}`
    const response = await send(target + query, { authorization: `Bearer ${demoKey.plaintext}` })
    expect(await response.json()).toEqual(example)
  }
  expect(operations.length).toBe(5)
})
