import { describe, expect, it, vi } from "vitest"
import {
  advance,
  captureError,
  connectionRefused,
  rateLimited,
  serviceUnavailable,
  useFakeTimeWithoutJitter
} from "./support.ts"
import { makeCachingClient, revalidatable } from "./cachingClient.ts"

useFakeTimeWithoutJitter()

describe("the cache during an outage", () => {
  it("after two failed calls for a target without a cached result, the client pauses between the requests for the target", async () => {
    vi.mocked(Math.random).mockReturnValue(0.5)
    const { read, requests } = makeCachingClient([
      ...Array(5).fill(connectionRefused),
      serviceUnavailable,
      revalidatable("a")
    ])
    const refused = { name: "ConnectionError" }
    expect(await captureError(read())).toMatchObject(refused)
    // The first call is retried twice. Each later call sends at most one request.
    expect(requests).toHaveLength(3)
    // The first pause is random. Each later pause has the maximum length: 90% of ttl.
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

  it("a call is retried again if the last failure for its target was long ago", async () => {
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

  it("a background refresh is retried like any other request, and only one refresh of a target runs at a time", async () => {
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
