import * as Arbitrary from "effect/Arbitrary"
import * as Schema from "effect/Schema"
import { it } from "@effect/vitest"
import * as Effect from "effect/Effect"
import { afterAll, beforeAll, describe, expect } from "vitest"
import { sample } from "../../support/archives.ts"
import { makeResources } from "../../support/database.ts"
import { outageStatus } from "../../support/services/outage.ts"
import { type Proxy, proxyToUrl } from "../../support/postgres.ts"
import { exchange, getHeader, type HttpResponse, rawRequest } from "../../support/clients/rawHttp.ts"
import { type Service, unlimited } from "../../support/service.ts"
import { startObservedService } from "../../support/services/startObservedService.ts"
import { makeTestDatabase } from "../../support/testDatabase.ts"
import { makeRequestGenerator, toComparable } from "./generatedRequests.ts"

/** The headers that the service adds or changes when it returns a response from before the outage. */
const ownHeaders = ["age", "cache-control", "cache-status"]

const withoutOwnHeaders = (response: HttpResponse) => {
  const { headers, ...rest } = toComparable(response)
  return { ...rest, headers: headers.filter(([name]) => !ownHeaders.includes(name!)) }
}

describe("responses while the database is unreachable", () => {
  const tenant = sample()
  const authorization = `Authorization: Bearer ${tenant.keys.active.plaintext}`
  const { GeneratedRequest, toTarget, toConditionLines } = makeRequestGenerator(tenant.archive)
  const { env } = makeTestDatabase([tenant.archive])
  const resources = makeResources()
  let proxy: Proxy
  let service: Service

  beforeAll(async () => {
    proxy = await resources.acquire(proxyToUrl(env.DATABASE_URL))
    service = await startObservedService({
      DATABASE_URL: proxy.url,
      ...unlimited
    })
  })
  afterAll(async () => {
    await resources.acquire(proxy.thaw)
    await service?.stop()
    await resources.release()
  })

  const send = (target: string, lines: ReadonlyArray<string>, method = "GET") =>
    exchange(service.port, rawRequest(target, lines, method))

  it.effect.prop(
    "while the database is unreachable, the service repeats each 200 and 304 that it sent before, and only Age, Cache-Control, Cache-Status, Date and X-Request-Id differ",
    {
      requests: Arbitrary.array(
        Arbitrary.schema(GeneratedRequest as Schema.Codec<typeof GeneratedRequest.Type>),
        {
          minLength: 300,
          maxLength: 300
        }
      )
    },
    ({ requests }) =>
      Effect.promise(async () => {
        const all: Array<readonly [target: string, lines: ReadonlyArray<string>, method: string]> = []
        const fresh: Array<HttpResponse> = []
        for (const request of requests) {
          const target = toTarget(request)
          const plain = await send(target, [authorization])
          const lines = [authorization, ...toConditionLines(request, getHeader(plain, "etag") ?? "")]
          all.push([target, lines, request.method])
          fresh.push(await send(target, lines, request.method))
        }
        const readKnownList = () => send("/api/v1/prompts", [authorization])
        await readKnownList()
        await Effect.runPromise(Effect.andThen(proxy.freeze, proxy.cut))
        const readStatus = async () => getHeader(await readKnownList(), "cache-status")
        await expect.poll(readStatus, { timeout: 10_000 }).toBe(outageStatus)
        const counts = { 200: 0, 304: 0 }
        for (const [index, expected] of fresh.entries()) {
          // The response cache contains no errors, so the service need not repeat an error.
          if (expected.status !== 200 && expected.status !== 304) continue
          counts[expected.status]++
          const response = await send(...all[index]!)
          expect(withoutOwnHeaders(response)).toEqual(withoutOwnHeaders(expected))
          expect(ownHeaders.map((name) => getHeader(response, name))).toEqual([
            expect.stringMatching(/^\d+$/),
            "no-store",
            outageStatus
          ])
        }
        expect(counts[200]).toBeGreaterThan(50)
        expect(counts[304]).toBeGreaterThan(20)
      }),
    { arbitrary: { runs: 1, maxShrinks: 0 }, timeout: 60_000 }
  )
})
