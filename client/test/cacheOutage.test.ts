import { describe, expect, it, vi } from "vitest"
import { AbortError } from "../src/index.ts"
import {
  advance,
  captureError,
  connectionRefused,
  errorResponse,
  neverResponds,
  type Responder,
  rateLimited,
  serviceUnavailable,
  useFakeTimeWithoutJitter
} from "./support.ts"
import { makeCachingClient, revalidatable } from "./cachingClient.ts"

useFakeTimeWithoutJitter()

const htmlPage = (status: number) => () =>
  new Response("<html>", { status, headers: { "content-type": "text/html" } })

const outages: Record<string, { readonly respond: Responder; readonly error: object }> = {
  "500": {
    respond: () => errorResponse(500, "INTERNAL_ERROR", "Internal error"),
    error: { name: "InternalServerError", status: 500 }
  },
  "502 with an HTML body": { respond: htmlPage(502), error: { name: "InvalidResponseError", status: 502 } },
  "503": { respond: serviceUnavailable, error: { name: "ServiceUnavailableError", status: 503 } },
  "429": { respond: () => rateLimited("1"), error: { name: "RateLimitedError", status: 429 } },
  "connection refused": { respond: connectionRefused, error: { name: "ConnectionError" } },
  "no response": { respond: neverResponds, error: { name: "TimeoutError" } },
  "402": {
    respond: () => errorResponse(402, "PAST_DUE", "Subscription is past due or over its limit"),
    error: { name: "PastDueError", status: 402 }
  },
  "200 with an HTML body": { respond: htmlPage(200), error: { name: "InvalidResponseError", status: 200 } },
  "a redirect": {
    respond: () => new Response(null, { status: 302, headers: { location: "http://login.test/" } }),
    error: { name: "InvalidResponseError", status: 302 }
  }
}

describe("the cache during an outage", () => {
  it.each(Object.keys(outages))(
    "stale results are returned immediately until maxStale, then the call fails: %s",
    async (kind) => {
      let down = false
      const { read } = makeCachingClient(
        [(request) => (down ? outages[kind]!.respond : revalidatable("a"))(request)],
        { timeout: 500 }
      )
      await read()
      down = true
      await advance(1_000)
      for (let age = 1_000; age < 10_000; age += 500) {
        expect(await read()).toEqual(["a", "stale", 0])
        await advance(500)
      }
      expect(await captureError(read())).toMatchObject(outages[kind]!.error)
      down = false
      await advance(2_000)
      expect(await read()).toEqual(["a", "fresh", 0])
    }
  )

  it("after two failed calls without a cached result, there are pauses between the requests for this result", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read, requests } = makeCachingClient([
      ...Array(5).fill(connectionRefused),
      serviceUnavailable,
      revalidatable("a")
    ])
    const refused = { name: "ConnectionError" }
    expect(await captureError(read())).toMatchObject(refused)
    // The first call is retried twice. All later requests are single ones.
    expect(requests).toHaveLength(3)
    // The first pause is random, the further ones are the longest: 90 % of ttl.
    for (const [error, count, pause] of [
      [refused, 4, 450],
      [refused, 5, 900],
      [{ status: 503 }, 6, 900]
    ] as const) {
      expect(await captureError(read())).toMatchObject(error)
      expect(requests).toHaveLength(count)
      await advance(pause - 1)
      expect(await captureError(read())).toMatchObject(error)
      expect(requests).toHaveLength(count)
      await advance(1)
    }
    expect(await read()).toEqual(["a", "fresh", 0])
    expect(await read()).toEqual(["a", "cached", 0])
  })

  it("after one failed call, the next call sends a request", async () => {
    const { read } = makeCachingClient([connectionRefused, revalidatable("a")], { maxRetries: 0 })
    expect(await captureError(read())).toMatchObject({ name: "ConnectionError" })
    expect(await read()).toEqual(["a", "fresh", 0])
  })

  it.each([0, 5_000])(
    "a failed call for an expired result does not delay the next call, with maxStale %i",
    async (maxStale) => {
      vi.mocked(Math.random).mockReturnValue(0.5)
      const { read } = makeCachingClient([revalidatable("a"), connectionRefused, revalidatable("b")], {
        maxRetries: 0,
        cache: { ttl: 1_000, maxStale }
      })
      await read()
      await advance(1_000 + maxStale)
      expect(await captureError(read())).toMatchObject({ name: "ConnectionError" })
      expect(await read()).toEqual(["b", "fresh", 0])
    }
  )

  it("a failed refresh does not delay a call after the result has expired", async () => {
    vi.mocked(Math.random).mockReturnValue(0.9)
    const { read } = makeCachingClient([revalidatable("a"), connectionRefused, revalidatable("b")], {
      maxRetries: 0,
      cache: { ttl: 1_000, maxStale: 100 }
    })
    await read()
    await advance(1_050)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(50)
    expect(await read()).toEqual(["b", "fresh", 0])
  })

  it("failed calls delay only calls with the same target, until any call succeeds", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read, requests } = makeCachingClient(
      [...Array(4).fill(connectionRefused), revalidatable("a"), revalidatable("b")],
      { maxRetries: 0 }
    )
    for (const id of ["p", "q"]) {
      for (const _ of [1, 2, 3]) await captureError(read(id, { timeout: 70 }))
    }
    expect(requests).toHaveLength(4)
    expect(await captureError(read("p"))).toMatchObject({ name: "ConnectionError" })
    expect(requests).toHaveLength(4)
    expect(await read("r")).toEqual(["a", "fresh", 0])
    expect(await read("p")).toEqual(["b", "fresh", 0])
  })

  it("a call with an aborted signal rejects with an AbortError even in a pause", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read } = makeCachingClient([connectionRefused])
    for (const _ of [1, 2]) expect(await captureError(read())).toMatchObject({ name: "ConnectionError" })
    expect(await captureError(read("p", { signal: AbortSignal.abort() }))).toBeInstanceOf(AbortError)
  })

  it("long after a failure, a call is retried again", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read, requests } = makeCachingClient([connectionRefused])
    await captureError(read())
    await advance(3_000)
    await captureError(read())
    expect(requests).toHaveLength(6)
  })

  it("a 429 delays calls no longer than its Retry-After", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const limited = () => rateLimited("0")
    const { read } = makeCachingClient([limited, limited, limited, revalidatable("a")], { maxRetries: 0 })
    for (const _ of [1, 2, 3]) expect(await captureError(read())).toMatchObject({ status: 429 })
    expect(await read()).toEqual(["a", "fresh", 0])
  })

  it("a background refresh retries like any call, and only one refresh runs at a time", async () => {
    const { read, requests } = makeCachingClient([
      revalidatable("a"),
      serviceUnavailable,
      serviceUnavailable,
      revalidatable("b")
    ])
    await read()
    await advance(1_000)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(250)
    expect(await read()).toEqual(["a", "stale", 0])
    await advance(500)
    expect(requests).toHaveLength(4)
    expect(await read()).toEqual(["b", "cached", 0])
  })
})
