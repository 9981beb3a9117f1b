import type * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { makeResources } from "../support/database.ts"
import { origin } from "../support/edge.ts"
import { exchange, headerOf, rawRequest } from "../support/rawHttp.ts"
import type { Service } from "../support/service.ts"

export type Origin = Awaited<ReturnType<typeof started>>["behind"]

/** The service, and what goes when the test ends. */
export const started = async () => {
  const resources = makeResources()
  return { resources, behind: await resources.acquire(origin) }
}

/** An answer of a cache or of the service itself, and whether it came out of an entry. */
export const ask = async (port: number, path: string, authorization: string | undefined, method = "GET") => {
  const lines = authorization === undefined ? [] : [`Authorization: ${authorization}`]
  const answer = await exchange(port, rawRequest(path, lines, method))
  return {
    status: answer.status,
    body: answer.body,
    requestId: headerOf(answer, "x-request-id"),
    stored: /HIT|STALE|UPDATING/.test(headerOf(answer, "x-cache") ?? "")
  }
}

/** Every way to ask that a mistake could mix up with another. */
const callersOf = ({ mine, theirs }: Origin) => [
  `Bearer ${mine.keys.active.plaintext}`,
  `bearer ${mine.keys.active.plaintext}`,
  `Bearer ${mine.keys.second.plaintext}`,
  `Bearer ${theirs.keys.active.plaintext}`,
  `Bearer ${theirs.keys.revoked.plaintext}`,
  `Bearer key_live_${"0".repeat(64)}`,
  "Bearer x",
  undefined
]

const pathsOf = ({ mine, theirs }: Origin) => [
  "/api/v1/prompts",
  "/api/v1/prompts?per_page=1",
  "/api/v1/prompts?per_page=0",
  `/api/v1/prompts/${mine.archive.prompts[0]!.id}`,
  `/api/v1/prompts/${theirs.archive.prompts[0]!.id}/resolved`,
  "/api/v1/nowhere"
]

/**
 * What breaks the promise of a cache while everybody asks for everything, in turn and again: an answer that is not
 * what the service itself says to this caller, an answer from an entry that this caller can't have made, an error
 * from an entry. And how many answers came from entries, without which all this says nothing.
 */
export const traffic = async (port: number, behind: Origin) => {
  const breaks: Array<string> = []
  const made = new Set<string>()
  let hits = 0
  for (let round = 0; round < 3; round++) {
    for (const path of pathsOf(behind)) {
      for (const caller of callersOf(behind)) {
        for (const method of ["GET", "HEAD"]) {
          const truth = await ask(behind.service.port, path, caller, method)
          const answer = await ask(port, path, caller, method)
          const who = `${method} ${path} by ${caller?.slice(0, 20)}`
          if (answer.status !== truth.status || answer.body !== truth.body) breaks.push(`wrong: ${who}`)
          if (answer.stored && answer.status !== 200) breaks.push(`an error from an entry: ${who}`)
          if (answer.stored && !made.has(`${path} ${caller}`)) breaks.push(`another's entry: ${who}`)
          made.add(`${path} ${caller}`)
          if (answer.stored) hits++
        }
      }
    }
  }
  return { breaks, hits }
}

/** What a cache must do before the service, for the cache that `before` gives the port of. */
export const cacheSuite = (options: {
  readonly name: string
  readonly missing: string | undefined
  readonly before: (service: Service) => Effect.Effect<number, never, Scope.Scope>
}): void => {
  const { name, missing, before } = options
  describe.skipIf(missing !== undefined)(`${name} before the service`, () => {
    let resources: ReturnType<typeof makeResources>
    let behind: Origin
    let port: number

    beforeAll(async () => {
      ;({ resources, behind } = await started())
      port = await resources.acquire(before(behind.service))
    })
    afterAll(() => resources?.release())

    const count = (route: string) => behind.service.output().split(`"route":"${route}"`).length - 1

    it("no two callers share an entry, and no error is stored", async () => {
      const { breaks, hits } = await traffic(port, behind)
      expect(breaks).toEqual([])
      // 4 callers have answers to 5 paths at most; asked three times with GET and HEAD, all but the first from entries.
      expect(hits).toBeGreaterThan(40)
    })

    it("an error is fetched each time", async () => {
      const key = `Bearer ${behind.theirs.keys.revoked.plaintext}`
      const ids = new Set<string | undefined>()
      for (let i = 0; i < 5; i++) ids.add((await ask(port, "/api/v1/prompts", key)).requestId)
      expect(ids.size).toBe(5)
    })

    it("an entry answers without the service, a full answer and 304", async () => {
      const key = `Authorization: Bearer ${behind.mine.keys.active.plaintext}`
      const path = `/api/v1/prompts/${behind.mine.archive.prompts[0]!.id}/versions`
      const first = await exchange(port, rawRequest(path, [key]))
      const asked = count("/api/v1/prompts/:id/versions")
      const etag = headerOf(first, "etag")!
      expect(
        [await exchange(port, rawRequest(path, [key]))].map(({ status, body }) => [status, body])
      ).toEqual([[200, first.body]])
      expect((await exchange(port, rawRequest(path, [key, `If-None-Match: ${etag}`]))).status).toBe(304)
      expect(count("/api/v1/prompts/:id/versions")).toBe(asked)
    })

    it("stays inside: what is not below /api/v1", async () => {
      const ways = [
        ...["/healthz", "/readyz", "/docs", "/openapi.json"],
        ...[
          "/api/v1/../../readyz",
          "/api/v1/%2e%2e/%2e%2e/readyz",
          "//readyz",
          "/api/v1//../readyz",
          "http://a/readyz"
        ]
      ]
      const asked = () => ["/healthz", "/readyz", "/docs", "/openapi.json"].map(count)
      const before = asked()
      for (const way of ways) await exchange(port, rawRequest(way))
      expect(asked()).toEqual(before)
    })
  })
}
