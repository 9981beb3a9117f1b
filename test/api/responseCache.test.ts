import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { afterAll, beforeAll, expect } from "vitest"
import { newId, sample } from "../support/archives.ts"
import { connectTo, embedded, makeResources } from "../support/database.ts"
import { startObserved } from "../support/observed.ts"
import { freePort } from "../support/ports.ts"
import { exchange, headerOf, type RawAnswer, rawRequest } from "../support/rawHttp.ts"
import type { Service } from "../support/service.ts"

const tenant = sample()
const workspace = tenant.archive.workspace.id
const [greeting] = tenant.archive.prompts
const base = `/api/v1/prompts/${greeting!.id}`
const resources = makeResources()
let service: Service
let metrics: string
let database: { readonly sql: (text: string) => Promise<unknown> }

beforeAll(async () => {
  const env = await resources.acquire(embedded.acquire)
  const port = await freePort()
  metrics = `http://127.0.0.1:${port}/metrics`
  service = await startObserved({
    ...env,
    METRICS_PORT: String(port),
    RATE_LIMIT_PER_KEY: "100000",
    RATE_LIMIT_PER_PROCESS: "100000"
  })
  const connected = await resources.acquire(connectTo(env))
  await connected.importArchive(tenant.archive)
  database = connected
})
afterAll(async () => {
  await service?.stop()
  await resources.release()
})

/** How many requests were answered from what was ready. */
const hits = async (): Promise<number> => {
  const text = await (await fetch(metrics)).text()
  return Number(/^cache_lookups_total\{cache="responses",result="hit"\} (\d+)/m.exec(text)![1])
}

const send = (target: string, lines: ReadonlyArray<string>, method = "GET") =>
  exchange(service.port, rawRequest(target, lines, method))

/** A change of the workspace that no answer shows: what is ready is so no longer. */
const change = () => database.sql(`update folders set name = name || '.' where workspace_id = '${workspace}'`)

const comparable = ({ status, headers, body }: RawAnswer) => ({
  status,
  body,
  headers: headers.filter(([name]) => name !== "x-request-id" && name !== "date").toSorted()
})

const authorization = `Authorization: Bearer ${tenant.keys.active.plaintext}`

const upTo = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))
const Asked = Schema.Struct({
  method: Schema.Literals(["GET", "HEAD"]),
  prompt: upTo(tenant.archive.prompts.length),
  below: Schema.Literals(["list", "", "/resolved", "/versions", "/versions/1", "/versions/2"]),
  query: Schema.Struct({
    page: Schema.optionalKey(upTo(3)),
    per_page: Schema.optionalKey(upTo(200)),
    tag: Schema.optionalKey(Schema.Literals(["production", "gr%C3%B6%C3%9Fe", "none", ""])),
    type: Schema.optionalKey(Schema.Literals(["system", "user", "no such type"])),
    folder_id: Schema.optionalKey(Schema.Literals(tenant.archive.folders.map(({ id }) => id))),
    unknown: Schema.optionalKey(Schema.Literals(["", "%", "a+b", "%ff"]))
  }),
  upperCase: Schema.Boolean,
  absoluteForm: Schema.Boolean,
  ifNoneMatch: Schema.Literals(["absent", "same", "weak, in a list", "any", "another"])
})

const targetOf = ({ prompt, below, query, upperCase, absoluteForm }: typeof Asked.Type): string => {
  const { id } = tenant.archive.prompts[prompt - 1]!
  const path = below === "list" ? "" : `/${upperCase ? id.toUpperCase() : id}${below}`
  const parameters = Object.entries(query).map(([name, value]) => `${name}=${value}`)
  const origin = absoluteForm ? "http://else.where" : ""
  return `${origin}/api/v1/prompts${path}${parameters.length === 0 ? "" : `?${parameters.join("&")}`}`
}

const conditionOf = ({ ifNoneMatch }: typeof Asked.Type, etag: string): ReadonlyArray<string> => {
  const values = { same: etag, "weak, in a list": `"x", W/${etag}`, any: "*", another: '"x"' }
  return ifNoneMatch === "absent" ? [] : [`If-None-Match: ${values[ifNoneMatch]}`]
}

let readyAnswers = 0

it.effect.prop(
  "a ready answer is the long way's, byte for byte",
  { asked: Asked },
  ({ asked }) =>
    Effect.promise(async () => {
      const target = targetOf(asked)
      const plain = await send(target, [authorization])
      const lines = [authorization, ...conditionOf(asked, headerOf(plain, "etag") ?? "")]
      await change()
      const before = await hits()
      const long = await send(target, lines, asked.method)
      expect(await hits()).toBe(before)
      const short = await send(target, lines, asked.method)
      expect(await hits()).toBe(before + (plain.status === 200 ? 1 : 0))
      expect(comparable(short)).toEqual(comparable(long))
      if (plain.status === 200) readyAnswers++
    }),
  { arbitrary: { runs: 200 }, timeout: 60_000 }
)

it("most of what was generated was ready", () => expect(readyAnswers).toBeGreaterThan(100))

it("only the same bytes of the same caller are answered from what is ready", async () => {
  await change()
  await send(base, [authorization])
  const before = await hits()
  const others: ReadonlyArray<readonly [string, ReadonlyArray<string>, string?]> = [
    [`${base}?`, [authorization]],
    [base.toUpperCase().replace("/API/V1/PROMPTS", "/api/v1/prompts"), [authorization]],
    [base, [authorization.replace("Bearer ", "bearer ")]],
    [base, [authorization.replace("Bearer ", "Bearer  ")]],
    [base, [`Authorization: Bearer ${tenant.keys.second.plaintext}`]],
    [base, [authorization, authorization]],
    [base, []],
    [base, [authorization, "Host: other"]],
    [base, [authorization], "POST"]
  ]
  for (const [target, lines, method] of others) await send(target, lines, method)
  expect(await hits()).toBe(before)
  expect((await send(base, [authorization, authorization])).status).toBe(401)
  expect((await send(base, [authorization, "Host: other"])).status).toBe(400)
})

it("errors are never ready", async () => {
  const before = await hits()
  for (let i = 0; i < 3; i++) {
    expect((await send(`/api/v1/prompts/${newId()}`, [authorization])).status).toBe(404)
    expect((await send("/api/v1/prompts?page=0", [authorization])).status).toBe(400)
    expect((await send(base, [`Authorization: Bearer ${tenant.keys.revoked.plaintext}`])).status).toBe(401)
  }
  expect(await hits()).toBe(before)
})

it("what changes is seen in the next answer, a revocation too", async () => {
  const key = tenant.keys.second.plaintext
  const read = () => send(base, [`Authorization: Bearer ${key}`])
  for (let i = 0; i < 20; i++) {
    await database.sql(`update prompts set title = 'Title ${i}' where id = '${greeting!.id}'`)
    await expect.poll(async () => JSON.parse((await read()).body).data.title).toBe(`Title ${i}`)
    expect((await read()).status).toBe(200)
  }
  await database.sql(`update api_keys set revoked_at = now() where id = '${tenant.keys.second.stored.id}'`)
  await expect.poll(async () => (await read()).status).toBe(401)
})

it("a ready answer has its own log line and request id", async () => {
  await send(base, [authorization])
  const id = "ready-answer-1"
  expect(headerOf(await send(base, [authorization, `X-Request-Id: ${id}`]), "x-request-id")).toBe(id)
  const line = service
    .output()
    .split("\n")
    .find((text) => text.includes(id))!
  expect(JSON.parse(line)).toEqual({
    time: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    level: "info",
    msg: "request",
    method: "GET",
    route: "/api/v1/prompts/:id",
    status: 200,
    duration_ms: expect.any(Number),
    request_id: id,
    workspace_id: workspace,
    key_id: tenant.keys.active.stored.id
  })
})
