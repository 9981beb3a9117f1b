import { beforeAll, describe, expect, it } from "vitest"
import { exchange, getHeader, rawRequest } from "../../support/clients/rawHttp.ts"
import { read, sendWait, summarizeWait } from "../../support/clients/read.ts"
import { makeAcquire } from "../../support/makeAcquire.ts"
import { type Origin, startNginx, startOrigin, startVarnish } from "../../support/programs/edge.ts"

/** Sends a request to a cache or to the service. `isStored` is true if the response came from a cache entry. */
const send = async (port: number, path: string, authorization: string | undefined, method: string) => {
  const lines = authorization === undefined ? [] : [`Authorization: ${authorization}`]
  const response = await exchange(port, rawRequest(path, lines, method))
  return {
    content: `${response.status} ${response.body}`,
    isStored: /HIT|STALE|UPDATING/.test(getHeader(response, "x-cache") ?? "")
  }
}

/** Returns Authorization values that a faulty cache could confuse. */
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
 * Sends the requests of every caller for every path three times, and returns the violations of these rules: A response
 * must equal the response of the service to the same caller. A response from an entry must not be an error, and the
 * caller must have created the entry. `hits` counts the responses that came from entries.
 */
const findViolations = async (port: number, origin: Origin) => {
  const violations: Array<string> = []
  const created = new Set<string>()
  let hits = 0
  const requests = listPaths(origin).flatMap((path) =>
    listCallers(origin).flatMap((caller) => ["GET", "HEAD"].map((method) => [path, caller, method] as const))
  )
  for (const [path, caller, method] of [...requests, ...requests, ...requests]) {
    const expected = await send(origin.service.port, path, caller, method)
    const { content, isStored } = await send(port, path, caller, method)
    const entry = `${path} by ${caller}`
    if (content !== expected.content) violations.push(`wrong response: ${method} ${entry}`)
    if (isStored && !content.startsWith("200")) violations.push(`error from an entry: ${method} ${entry}`)
    if (isStored && !created.has(entry)) violations.push(`entry of another caller: ${method} ${entry}`)
    created.add(entry)
    if (isStored) hits++
  }
  return { violations, hits }
}

describe.each([
  ["nginx", startNginx],
  ["Varnish", startVarnish]
] as const)("%s in front of the service", (_, start) => {
  const acquire = makeAcquire()
  let origin: Origin
  let port: number

  beforeAll(async () => {
    origin = await acquire(startOrigin)
    port = (await acquire(start(origin.service))).port
  })

  const countRequests = (route: string) => origin.service.output().split(`"route":"${route}"`).length - 1

  it("a cache never shares an entry between two callers and never stores an error", async () => {
    const { violations, hits } = await findViolations(port, origin)
    expect(violations).toEqual([])
    // Four callers get a 200, each for three paths. Of the six requests of a caller for a path, at most two are cache
    // misses: the first GET and, in nginx, the first HEAD.
    expect(hits).toBeGreaterThan(40)
  })

  it("a cache responds 200 and 304 from an entry without a request to the service", async () => {
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

  it("a cache forwards a request that waits for a change, and does not store the response", async () => {
    const prompt = origin.mine.archive.prompts[0]!
    const url = `http://127.0.0.1:${port}/api/v1/prompts/${prompt.id}/resolved`
    const request = [url, origin.mine.keys.active.plaintext] as const
    const { etag } = (await read(...request)).headers
    const waited = await sendWait(...request, etag, 1).response
    expect(summarizeWait(waited)).toEqual({ status: 304, applied: "wait=1", caching: "no-store" })
    await origin.database.sql("update prompts set current_content = 'edited' where id = $1", [prompt.id])
    expect((await sendWait(...request, etag).response).body).toContain('"resolved_content":"edited')
    expect((await read(...request)).headers.etag).toBe(etag)
  })

  it("a cache forwards no request for a path outside /api/v1", async () => {
    const internal = ["/healthz", "/readyz", "/docs", "/openapi.json"]
    const disguised = [
      ...["/api/v1/../../readyz", "/api/v1/%2e%2e/%2e%2e/readyz"],
      ...["//readyz", "/api/v1//../readyz", "http://a/readyz"]
    ]
    const before = internal.map(countRequests)
    for (const target of [...internal, ...disguised]) await exchange(port, rawRequest(target))
    expect(internal.map(countRequests)).toEqual(before)
  })
})
