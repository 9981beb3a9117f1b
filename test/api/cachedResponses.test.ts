import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { afterAll, beforeAll, expect } from "vitest"
import { newId, sample } from "../support/archives.ts"
import { exchange, getHeader, type HttpResponse, rawRequest } from "../support/clients/rawHttp.ts"
import { makeTestDatabase } from "../support/database/testDatabase.ts"
import { type Proxy, proxyToUrl } from "../support/network/tcpProxy.ts"
import { readMetric, responseHits } from "../support/services/metrics.ts"
import { outageStatus } from "../support/services/outage.ts"
import { type ObservedService, startObservedService } from "../support/services/startObservedService.ts"
import { runService, unlimited } from "../support/services/startService.ts"

const { archive, keys } = sample()
const [greeting] = archive.prompts
const base = `/api/v1/prompts/${greeting!.id}`
const authorization = `Authorization: Bearer ${keys.active.plaintext}`

const { env, sql, acquire } = makeTestDatabase([archive])
let proxy: Proxy
let service: ObservedService
beforeAll(async () => {
  proxy = await acquire(proxyToUrl(env.DATABASE_URL))
  const settings = { DATABASE_URL: proxy.url, ...unlimited }
  service = await acquire(runService(() => startObservedService(settings)))
})
afterAll(() => Effect.runPromise(proxy.thaw))

const send = (target: string, lines: ReadonlyArray<string>, method = "GET") =>
  exchange(service.port, rawRequest(target, lines, method))
const countHits = () => readMetric(service.metricsPort, responseHits)

let spaces = 10
/** Returns an Authorization header line that no earlier request had, so that no cached response matches. */
const makeUncachedAuthorization = () => authorization.replace("Bearer ", `Bearer${" ".repeat(++spaces)}`)

const positiveIntUpTo = (maximum: number) => Schema.Int.check(Schema.isBetween({ minimum: 1, maximum }))

/** Values of If-None-Match that match a response with the ETag E. */
const matching = ["E", " E ", "W/E", '"x", E', '"a,b" ,W/E', '"x"\r\nIf-None-Match: E', "*"]

/** A valid or invalid request to an endpoint. */
const GeneratedRequest = Schema.Struct({
  method: Schema.Literals(["GET", "HEAD"]),
  id: Schema.Literals([newId(), ...archive.prompts.flatMap(({ id }) => [id, id.toUpperCase()])]),
  resource: Schema.Literals(["list", "", "/resolved", "/versions", "/versions/1", "/versions/2"]),
  query: Schema.Struct({
    page: Schema.optionalKey(positiveIntUpTo(3)),
    per_page: Schema.optionalKey(positiveIntUpTo(200)),
    tag: Schema.optionalKey(Schema.Literals(["production", "gr%C3%B6%C3%9Fe", "none", ""])),
    type: Schema.optionalKey(Schema.Literals(["system", "user", "unknown"])),
    folder_id: Schema.optionalKey(Schema.Literals(archive.folders.map(({ id }) => id))),
    unknown: Schema.optionalKey(Schema.Literals(["", "%", "a+b", "%ff"]))
  }),
  origin: Schema.Literals(["", "http://localhost", "HTTPS://user@else.where:99"]),
  ifNoneMatch: Schema.optionalKey(Schema.Literals([...matching, "", '"x"', '"E"']))
})
type GeneratedRequest = typeof GeneratedRequest.Type

const toTarget = ({ id, resource, query, origin }: GeneratedRequest): string => {
  const path = resource === "list" ? "" : `/${id}${resource}`
  const parameters = Object.entries(query).map(([name, value]) => `${name}=${value}`)
  return `${origin}/api/v1/prompts${path}${parameters.length === 0 ? "" : `?${parameters.join("&")}`}`
}

const toConditionLines = ({ ifNoneMatch }: GeneratedRequest, etag: string): ReadonlyArray<string> =>
  ifNoneMatch === undefined ? [] : [`If-None-Match: ${ifNoneMatch.replace("E", etag)}`]

/**
 * Returns the response that a request must get. `plain` is the response to an unconditional GET of its path and query.
 */
const predict = (plain: HttpResponse, { method, ifNoneMatch = "" }: GeneratedRequest): HttpResponse =>
  plain.status === 200 && matching.includes(ifNoneMatch)
    ? { status: 304, headers: plain.headers.filter(([name]) => !name.startsWith("content-")), body: "" }
    : { ...plain, body: method === "HEAD" ? "" : plain.body }

/** Returns a response without `X-Request-Id`, `Date` and the headers in `different`. */
const toComparable = ({ status, headers, body }: HttpResponse, ...different: ReadonlyArray<string>) => ({
  status,
  body,
  headers: headers.filter(([name]) => !["x-request-id", "date", ...different].includes(name)).toSorted()
})

it("a 304 states the current version in Prompt-Version, even if a new version has the same text", async () => {
  const first = await send(`${base}/resolved`, [authorization])
  const version = Number(getHeader(first, "prompt-version"))
  const condition = `If-None-Match: ${getHeader(first, "etag")}`
  await sql("update prompts set current_version = current_version + 1 where id = $1", [greeting!.id])
  const read = async () => {
    const response = await send(`${base}/resolved`, [authorization, condition])
    return [response.status, getHeader(response, "prompt-version")]
  }
  await expect.poll(read).toEqual([304, String(version + 1)])
})

/** The successful responses that the next test receives, with their requests. */
const known: Array<readonly [response: HttpResponse, request: Parameters<typeof send>]> = []

it.effect.prop(
  "HEAD and a matching If-None-Match change a response only as HTTP requires, and a repeated response differs only in Date and X-Request-Id",
  { request: GeneratedRequest },
  ({ request }) =>
    Effect.promise(async () => {
      const target = toTarget(request)
      const plain = await send(toTarget({ ...request, origin: "" }), [makeUncachedAuthorization()])
      const condition = toConditionLines(request, getHeader(plain, "etag") ?? "")
      const lines = [makeUncachedAuthorization(), ...condition]
      const before = await countHits()
      const fresh = await send(target, lines, request.method)
      expect(await countHits()).toBe(before)
      expect(toComparable(fresh)).toEqual(toComparable(predict(plain, request)))
      // The service caches nothing while its change feed counts as down because of a late heartbeat.
      await expect
        .poll(async () => {
          const repeated = await send(target, lines, request.method)
          expect(toComparable(repeated)).toEqual(toComparable(fresh))
          return (await countHits()) > before
        })
        .toBe(plain.status === 200)
      if (plain.status === 200) known.push([fresh, [target, lines, request.method]])
    })
)

it("a request gets a cached response only if its target and Authorization header equal those of an earlier GET byte by byte", async () => {
  await send(base, [authorization])
  const before = await countHits()
  const others: ReadonlyArray<readonly [string, ReadonlyArray<string>, string?]> = [
    [`${base}?`, [authorization]],
    [base.toUpperCase().replace("/API/V1/PROMPTS", "/api/v1/prompts"), [authorization]],
    [base, [authorization.replace("Bearer ", "bearer ")]],
    [base, [authorization.replace("Bearer ", "Bearer  ")]],
    [base, [`Authorization: Bearer ${keys.second.plaintext}`]],
    [base, []],
    [base, [authorization], "POST"]
  ]
  for (const [target, lines, method] of others) await send(target, lines, method)
  expect((await send(base, [authorization, authorization])).status).toBe(401)
  expect((await send(base, [authorization, "Host: other"])).status).toBe(400)
  expect(await countHits()).toBe(before)
})

/** The headers that the service adds or changes when it returns a response from before the outage. */
const outageHeaders = ["age", "cache-control", "cache-status"]

it("during a database outage, a cached response differs from the original only in Age, Cache-Control, Cache-Status, Date and X-Request-Id", async () => {
  await Effect.runPromise(Effect.andThen(proxy.freeze, proxy.cut))
  const readLast = async () => getHeader(await send(...known.at(-1)![1]), "cache-status")
  await expect.poll(readLast).toBe(outageStatus)
  const repeated: Array<number> = []
  for (const [fresh, request] of known) {
    const response = await send(...request)
    // A reconnect of the change feed empties the cache.
    if (response.status === 503) continue
    repeated.push(response.status)
    expect(toComparable(response, ...outageHeaders)).toEqual(toComparable(fresh, ...outageHeaders))
    expect(outageHeaders.map((name) => getHeader(response, name))).toEqual([
      expect.stringMatching(/^\d+$/),
      "no-store",
      outageStatus
    ])
  }
  expect(new Set(repeated)).toEqual(new Set([200, 304]))
})
