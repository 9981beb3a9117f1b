import { describe, expect, it } from "vitest"
import { ServerSightings } from "../../../../../src/adapters/outbound/postgres/connection/ServerSightings.ts"

const second = 1_000
const minute = 60 * second

describe("ServerSightings", () => {
  it("restarts and failovers are no alternation, however many there are", () => {
    const sightings = new ServerSightings()
    for (let i = 0; i < 100; i++) {
      expect(sightings.record(String(i), i * second)).toBe(false)
      expect(sightings.isAlternating(i * second)).toBe(false)
    }
  })

  it("connections to the old server that are confirmed within 4 s of a failover are no alternation", () => {
    const sightings = new ServerSightings()
    sightings.record("old", 0)
    for (let at = 0; at < 4 * second; at += 50) {
      sightings.record(at % 100 === 0 ? "new" : "old", at)
      expect(sightings.isAlternating(at)).toBe(false)
    }
    sightings.record("new", 4 * second)
    expect(sightings.isAlternating(5 * second)).toBe(false)
  })

  it("two servers in turn are an alternation, whether the connections are opened quickly or slowly", () => {
    for (const interval of [10, second, minute]) {
      const sightings = new ServerSightings()
      let now = 0
      for (let i = 0; !sightings.isAlternating(now); i++) {
        sightings.record(i % 2 === 0 ? "a" : "b", now)
        now += interval
        expect(now).toBeLessThan(10 * minute)
      }
    }
  })

  it("an alternation lasts until one server alone has been seen for a minute, and may begin again", () => {
    const sightings = new ServerSightings()
    for (let round = 0; round < 2; round++) {
      const start = round * 10 * minute
      for (let i = 0; i < 20; i++) sightings.record(i % 2 === 0 ? "a" : "b", start + i * second)
      expect(sightings.isAlternating(start + 20 * second)).toBe(true)
      sightings.record("a", start + 70 * second)
      sightings.record("b", start + 71 * second)
      expect(sightings.isAlternating(start + 130 * second)).toBe(true)
      for (let i = 72; i < 132; i++) sightings.record("b", start + i * second)
      expect(sightings.isAlternating(start + 132 * second)).toBe(false)
    }
  })

  it("a server returns if another one was seen after it", () => {
    const sightings = new ServerSightings()
    expect(sightings.record("a", 0)).toBe(false)
    expect(sightings.record("a", 1)).toBe(false)
    expect(sightings.record("b", 2)).toBe(false)
    expect(sightings.record("a", 3)).toBe(true)
    expect(sightings.record("a", 4)).toBe(true)
  })
})
