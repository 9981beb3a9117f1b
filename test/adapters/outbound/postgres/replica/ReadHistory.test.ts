import { assert, describe, it } from "@effect/vitest"
import { ReadHistory } from "../../../../../src/adapters/outbound/postgres/replica/ReadHistory.ts"

const never = Number.NEGATIVE_INFINITY

describe("ReadHistory", () => {
  it("tells reads of the primary, of a replica and of its former sessions apart", () => {
    const history = new ReadHistory()
    assert.deepStrictEqual([history.lastElsewhere("a", 1), history.lastOnReplica("a")], [never, never])
    history.recordReplica("a", 10, 1)
    assert.deepStrictEqual(
      [history.lastElsewhere("a", 1), history.lastElsewhere("a", 2), history.lastOnReplica("a")],
      [never, 10, 10]
    )
    history.recordReplica("a", 20, 2)
    assert.deepStrictEqual([history.lastElsewhere("a", 2), history.lastOnReplica("a")], [10, 20])
    // A read of the former session that ends late.
    history.recordReplica("a", 25, 1)
    assert.deepStrictEqual([history.lastElsewhere("a", 2), history.lastOnReplica("a")], [25, 25])
    history.recordPrimary("a", 30)
    assert.deepStrictEqual([history.lastElsewhere("a", 2), history.lastOnReplica("a")], [30, 25])
    assert.strictEqual(history.lastElsewhere("b", 2), never)
  })

  it("never returns an earlier time than the last read, however many ids are read", () => {
    const history = new ReadHistory()
    for (let i = 0; i < 120_000; i++) {
      if (i % 3 === 0) history.recordPrimary(`id ${i}`, i)
      else history.recordReplica(`id ${i}`, i, i < 60_000 ? 1 : 2)
      if (i === 110_000) history.forgetBefore(1_000)
    }
    for (let i = 1_000; i < 120_000; i += 997) {
      if (i % 3 === 0) assert.isAtLeast(history.lastElsewhere(`id ${i}`, 2), i)
      else assert.isAtLeast(history.lastOnReplica(`id ${i}`), i)
      if (i % 3 !== 0 && i < 60_000) assert.isAtLeast(history.lastElsewhere(`id ${i}`, 2), i)
    }
  })
})
