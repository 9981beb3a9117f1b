import { setTimeout } from "node:timers/promises"
import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { beforeAll, describe, expect, it } from "vitest"
import { type Cache, startOrigin } from "../../support/programs/edge.ts"
import { exchange, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { read, sendWait, summarizeWait } from "../../support/clients/read.ts"
import { makeAcquire } from "../../support/testDatabase.ts"
import type { Service } from "../../support/service.ts"

export type Origin = Effect.Success<typeof startOrigin>

/** Sends a request to a cache or to the service. `isStored` is true if the response came from a cache entry. */
export const send = async (port: number, path: string, authorization: string | undefined, method = "GET") => {
  const lines = authorization === undefined ? [] : [`Authorization: ${authorization}`]
  const response = await exchange(port, rawRequest(path, lines, method))
  return {
    status: response.status,
    body: response.body,
    requestId: getHeader(response, "x-request-id"),
    isStored: /HIT|STALE|UPDATING/.test(getHeader(response, "x-cache") ?? "")
  }
}

/** Lists Authorization values that a faulty cache could confuse. */
const listCallers = ({ mine, theirs }: Origin) => [
  `Bearer ${mine.keys.active.plaintext}`,
  `bearer ${mine.keys.active.plaintext}`,
  `Bearer ${mine.keys.second.plaintext}`,
  `Bearer ${theirs.keys.active.plaintext}`,
  `Bearer ${theirs.keys.revoked.plaintext}`,
  `Bearer key_live_${"0".repeat(64)}`,
  "Bearer x",
  undefined
]

const listPaths = ({ mine, theirs }: Origin) => [
  "/api/v1/prompts",
  "/api/v1/prompts?per_page=1",
  "/api/v1/prompts?per_page=0",
  `/api/v1/prompts/${mine.archive.prompts[0]!.id}`,
  `/api/v1/prompts/${theirs.archive.prompts[0]!.id}/resolved`,
  "/api/v1/nowhere"
]

/**
 * Sends every caller's request for every path three times and returns the violations of a cache. A response must equal
 * the response of the service to the same caller. A response from an entry must not be an error, and the caller must
 * have created the entry. `hits` counts the responses that came from entries.
 */
export const findViolations = async (port: number, origin: Origin) => {
  const violations: Array<string> = []
  const created = new Set<string>()
  let hits = 0
  for (let round = 0; round < 3; round++) {
    for (const path of listPaths(origin)) {
      for (const caller of listCallers(origin)) {
        for (const method of ["GET", "HEAD"]) {
          const expected = await send(origin.service.port, path, caller, method)
          const actual = await send(port, path, caller, method)
          const label = `${method} ${path} by ${caller?.slice(0, 20)}`
          if (actual.status !== expected.status || actual.body !== expected.body)
            violations.push(`wrong response: ${label}`)
          if (actual.isStored && actual.status !== 200) violations.push(`error from an entry: ${label}`)
          if (actual.isStored && !created.has(`${path} ${caller}`))
            violations.push(`entry of another caller: ${label}`)
          created.add(`${path} ${caller}`)
          if (actual.isStored) hits++
        }
      }
    }
  }
  return { violations, hits }
}

/**
 * Registers the tests that every cache in front of the service must pass.
 */
export const cacheSuite = (options: {
  readonly name: string
  readonly start: (service: Service) => Effect.Effect<Cache, never, Scope.Scope>
}): void => {
  const { name, start } = options
  describe(`${name} in front of the service`, () => {
    const acquire = makeAcquire()
    let origin: Origin
    let port: number

    beforeAll(async () => {
      origin = await acquire(startOrigin)
      port = (await acquire(start(origin.service))).port
    })

    const countRequests = (route: string) => origin.service.output().split(`"route":"${route}"`).length - 1

    it(`${name} never shares a cache entry between two callers and never stores an error`, async () => {
      const { violations, hits } = await findViolations(port, origin)
      expect(violations).toEqual([])
      // Four callers get a 200, each for three paths. Of the six requests of a caller for a path, at most two are cache
      // misses: the first GET and, in nginx, the first HEAD.
      expect(hits).toBeGreaterThan(40)
    })

    it(`${name} serves a 200 and a 304 from a cache entry without a request to the service`, async () => {
      const key = `Authorization: Bearer ${origin.mine.keys.active.plaintext}`
      const path = `/api/v1/prompts/${origin.mine.archive.prompts[0]!.id}/versions`
      const first = await exchange(port, rawRequest(path, [key]))
      const before = countRequests("/api/v1/prompts/:id/versions")
      const etag = getHeader(first, "etag")!
      const { status, body } = await exchange(port, rawRequest(path, [key]))
      expect({ status, body }).toEqual({ status: 200, body: first.body })
      expect((await exchange(port, rawRequest(path, [key, `If-None-Match: ${etag}`]))).status).toBe(304)
      expect(countRequests("/api/v1/prompts/:id/versions")).toBe(before)
    })

    it(`${name} lets a request wait for a change at the service`, async () => {
      const prompt = origin.mine.archive.prompts[0]!
      const url = `http://127.0.0.1:${port}/api/v1/prompts/${prompt.id}/resolved`
      const request = [url, origin.mine.keys.active.plaintext] as const
      const { etag } = (await read(...request)).headers
      const waited = await sendWait(...request, etag, 1).response
      expect(summarizeWait(waited)).toEqual({ status: 304, applied: "wait=1", caching: "no-store" })
      const { response } = sendWait(...request, etag)
      await setTimeout(500)
      await origin.database.sql("update prompts set current_content = 'edited' where id = $1", [prompt.id])
      const changed = await response
      expect([changed.status, JSON.parse(changed.body).data.resolved_content.slice(0, 6)]).toEqual([
        200,
        "edited"
      ])
      // The cache has not stored this response: its own entry is older.
      expect((await read(...request)).headers.etag).toBe(etag)
    })

    it(`${name} forwards no request for a path outside /api/v1`, async () => {
      const targets = [
        ...["/healthz", "/readyz", "/docs", "/openapi.json"],
        ...[
          "/api/v1/../../readyz",
          "/api/v1/%2e%2e/%2e%2e/readyz",
          "//readyz",
          "/api/v1//../readyz",
          "http://a/readyz"
        ]
      ]
      const countAll = () => ["/healthz", "/readyz", "/docs", "/openapi.json"].map(countRequests)
      const before = countAll()
      for (const target of targets) await exchange(port, rawRequest(target))
      expect(countAll()).toEqual(before)
    })
  })
}
