import { afterAll, beforeAll, describe, expect, it } from "vitest"
import demo from "../../src/demo/workspace.json" with { type: "json" }
import type { Archive } from "../../src/application/formats/Archive.ts"
import { PromptType } from "../../src/domain/Prompt.ts"
import { archive, fragment, key, newId, prompt, sample, use, user, workspace } from "../support/archives.ts"
import { connectTo, embedded, makeResources } from "../support/database.ts"
import { startObservedService as startObserved } from "../support/startObservedService.ts"
import { prism, type Violation, parseViolations as violationsOf } from "../support/prism.ts"
import type { Service } from "../support/service.ts"

// biome-ignore lint/suspicious/noExplicitAny: a document to look around in
type Json = any

const perKey = 60

const home = sample()
const [greeting] = home.archive.prompts
const megabyte = fragment("x".repeat(1024 * 1024))
const large = prompt({ fragments: Array.from({ length: 9 }, (_, position) => use(megabyte, position)) })
const foreign = sample()
const demoArchive = demo as unknown as Archive
const demoKey = key(demoArchive.workspace.id, demoArchive.users[0]!)

const refused = (over: Parameters<typeof workspace>[0]) => {
  const where = workspace(over)
  const owner = user()
  const { plaintext, stored } = key(where.id, owner)
  return { key: plaintext, archive: archive({ workspace: where, users: [owner], api_keys: [stored] }) }
}
const free = refused({ tier: "free" })
const disputed = refused({ billing_status: "disputed" })
const pastDue = refused({ billing_status: "past_due" })

const resources = makeResources()
let service: Service
let away: Service
let openApi: Json
let proxy: string

const read = async (url: string): Promise<Json> => (await fetch(url)).json()

beforeAll(async () => {
  const env = await resources.acquire(embedded.acquire)
  // Nothing listens on port 1.
  away = await startObserved({ DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" }, "/healthz")
  service = await startObserved({
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
  proxy = await resources.acquire(prism(openApi, service.url))
})

afterAll(async () => {
  await service?.stop()
  await away?.stop()
  await resources.release()
})

const mine = home.keys.active.plaintext
const at = `/api/v1/prompts/${greeting!.id}`

interface Sent {
  readonly authorization?: string | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly by?: string
}

const send = (
  target: string,
  { authorization = `Bearer ${mine}`, headers = {}, by = proxy }: Sent = {}
): Promise<Response> =>
  fetch(by + target, { headers: authorization === "" ? headers : { authorization, ...headers } })

/** What a proxy says of an answer and of the request before it, and the status. */
const judge = async (response: Response) => {
  await response.arrayBuffer()
  const violations = violationsOf(response)
  const where = (side: Violation["location"][0]) =>
    violations.filter(({ location }) => location[0] === side).map(({ location }) => location.join("."))
  return {
    status: response.status,
    request: [...new Set(where("request"))],
    response: violations.filter(({ location }) => location[0] === "response")
  }
}

describe("no answer violates the description, and a request does where it is bad", () => {
  it.each([
    ["/api/v1/prompts"],
    ["/api/v1/prompts?page=1&per_page=100"],
    ["/api/v1/prompts?per_page=9007199254740991"],
    ["/api/v1/prompts?page=9007199254740991"],
    ["/api/v1/prompts?tag=gr%C3%B6%C3%9Fe"],
    ["/api/v1/prompts?tag="],
    ["/api/v1/prompts?another=parameter"],
    [`/api/v1/prompts?folder_id=${newId()}`],
    [`/api/v1/prompts?folder_id=${newId().toUpperCase()}`],
    ...PromptType.literals.map((type) => [`/api/v1/prompts?type=${type}`]),
    [at],
    [`/api/v1/prompts/${greeting!.id.toUpperCase()}`],
    [`${at}/resolved`],
    [`${at}/versions`],
    [`${at}/versions?page=2&per_page=2`],
    [`${at}/versions/1`],
    [`${at}/versions/3`]
  ])("200: %s", async (target) => {
    expect(await judge(await send(target))).toEqual({ status: 200, request: [], response: [] })
  })

  it("304", async () => {
    const etag = (await send(at)).headers.get("etag")!
    const headers = { "if-none-match": `W/${etag}`, "x-request-id": "mine" }
    expect(await judge(await send(at, { headers }))).toEqual({ status: 304, request: [], response: [] })
  })

  it.each([
    ["/api/v1/prompts?page=0", ["request.query.page"]],
    ["/api/v1/prompts?page=two", ["request.query.page"]],
    ["/api/v1/prompts?page=1&page=2", ["request.query.page"]],
    ["/api/v1/prompts?per_page=-1", ["request.query.per_page"]],
    ["/api/v1/prompts?per_page=1.5", ["request.query.per_page"]],
    ["/api/v1/prompts?folder_id=1", ["request.query.folder_id"]],
    ["/api/v1/prompts?type=System", ["request.query.type"]],
    [`${at}/versions?page=0`, ["request.query.page"]],
    // Prism takes an empty parameter for none.
    ["/api/v1/prompts?folder_id=", []],
    ["/api/v1/prompts?type=", []]
  ])("400: %s", async (target, request) => {
    expect(await judge(await send(target))).toEqual({ status: 400, request, response: [] })
  })

  const missing = `/api/v1/prompts/${newId()}`
  const theirs = `/api/v1/prompts/${foreign.archive.prompts[0]!.id}`
  it.each([
    [missing, []],
    [`${missing}/resolved`, []],
    [`${missing}/versions`, []],
    [`${missing}/versions/1`, []],
    [theirs, []],
    [`${at}/versions/4`, []],
    [`${at}/versions/0`, ["request.path.version"]],
    [`${at}/versions/2147483648`, ["request.path.version"]],
    [`${at}/versions/one`, ["request.path.version"]],
    ["/api/v1/prompts/greeting", ["request.path.id"]],
    ["/api/v1/prompts/a%20b", ["request.path.id"]]
  ])("404: %s", async (target, request) => {
    expect(await judge(await send(target))).toEqual({ status: 404, request, response: [] })
  })

  const { revoked, ownerMustReset, legacy } = home.keys
  it.each([
    ["no key", "", ["request"]],
    ["another scheme", "Basic Zm9vOmJhcg==", ["request"]],
    ["another format", "Bearer sk-1", []],
    ["an unknown key", `Bearer key_live_${"0".repeat(64)}`, []],
    ["a revoked key", `Bearer ${revoked.plaintext}`, []],
    ["an owner who must reset", `Bearer ${ownerMustReset.plaintext}`, []],
    ["a key of no organization", `Bearer ${legacy.plaintext}`, []]
  ])("401: %s", async (_, authorization, request) => {
    expect(await judge(await send(at, { authorization }))).toEqual({ status: 401, request, response: [] })
  })

  it.each([
    [403, "free", free.key],
    [402, "disputed", disputed.key],
    [402, "past due", pastDue.key]
  ])("%i: %s", async (status, _, token) => {
    const authorization = `Bearer ${token}`
    expect(await judge(await send(at, { authorization }))).toEqual({ status, request: [], response: [] })
  })

  it("429", async () => {
    const authorization = `Bearer ${home.keys.second.plaintext}`
    // Wherever the minute turns, one of these is too many.
    for (let i = 0; i <= 2 * perKey; i++) {
      const judged = await judge(await send(at, { authorization }))
      if (judged.status === 200) continue
      return expect(judged).toEqual({ status: 429, request: [], response: [] })
    }
    expect.fail("the limit was never exceeded")
  })

  it("500: resolved content that is too large", async () => {
    expect(await judge(await send(`/api/v1/prompts/${large.id}/resolved`))).toEqual({
      status: 500,
      request: [],
      response: []
    })
  })

  it("503: the database is away", async () => {
    const by = await resources.acquire(prism(openApi, away.url))
    for (const target of ["/api/v1/prompts", at, `${at}/resolved`, `${at}/versions`, `${at}/versions/1`])
      expect(await judge(await send(target, { by }))).toEqual({ status: 503, request: [], response: [] })
  })
})

it("a body, a header and a status that are not as described would have been found", async () => {
  const planted = structuredClone(openApi)
  planted.components.schemas.ResolvedPrompt.properties.fragment_count = { type: "string" }
  const operation = planted.paths["/api/v1/prompts/{id}"].get
  operation.responses[200].headers.ETag.schema.pattern = "^none$"
  delete planted.paths["/api/v1/prompts"].get.responses[401]
  const by = await resources.acquire(prism(planted, service.url))
  const found = async (target: string, sent: Sent = {}) =>
    (await judge(await send(target, { ...sent, by }))).response.map(({ location }) => location.join("."))
  expect(await found(`${at}/resolved`)).toEqual(["response.body.data.fragment_count"])
  expect(await found(at)).toEqual(["response.header.etag"])
  expect(await found("/api/v1/prompts", { authorization: "Bearer sk-1" })).toEqual(["response"])
})

/** A parameter's example: the one that the page starts from. */
const exampleOf = ({ examples }: Json): string => examples.default.value

it("the examples are what the demo answers", async () => {
  const operations = Object.entries<Json>(openApi.paths)
  for (const [path, { get }] of operations) {
    const example = exampleOf(get.responses[200].content["application/json"])
    const target = get.parameters
      .filter((parameter: Json) => parameter.in === "path")
      .reduce(
        (path: string, parameter: Json) => path.replace(`{${parameter.name}}`, exampleOf(parameter)),
        path
      )
    const { meta } = example as Json
    const query = meta === undefined ? "" : `?page=${meta.page}&per_page=${meta.per_page}`
    const response = await send(target + query, { authorization: `Bearer ${demoKey.plaintext}` })
    expect(await response.json()).toEqual(example)
  }
  expect(operations.length).toBe(5)
})
