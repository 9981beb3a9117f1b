import { assert, describe, it } from "@effect/vitest"
import { FenceQueue } from "../../../../../src/adapters/outbound/postgres/replica/FenceQueue.ts"

const fence = (revision: number) => ({ revision, at: revision * 10, position: BigInt(revision * 100) })

describe("FenceQueue", () => {
  it("has passed the last fence that is not after the position", () => {
    const fences = new FenceQueue()
    assert.strictEqual(fences.passed.revision, -1)
    for (const revision of [1, 2, 3]) fences.add(fence(revision))
    fences.advance(99n)
    assert.strictEqual(fences.passed.revision, -1)
    fences.advance(250n)
    assert.deepStrictEqual([fences.passed, fences.next], [fence(2), fence(3)])
    fences.advance(300n)
    assert.deepStrictEqual([fences.passed, fences.next], [fence(3), undefined])
    fences.add({ ...fence(4), position: 300n })
    assert.strictEqual(fences.passed.revision, 4)
  })

  it("has passed nothing after it lost its position, and the same fence once that position is seen again", () => {
    const fences = new FenceQueue()
    for (const revision of [1, 2, 3]) fences.add(fence(revision))
    fences.advance(200n)
    fences.losePosition()
    assert.deepStrictEqual([fences.passed.revision, fences.position], [-1, undefined])
    fences.advance(150n)
    assert.strictEqual(fences.passed.revision, -1)
    fences.advance(200n)
    assert.strictEqual(fences.passed.revision, 2)
  })

  it("has passed nothing after it was cleared until a new fence is passed", () => {
    const fences = new FenceQueue()
    fences.add(fence(1))
    fences.advance(1_000n)
    fences.clear()
    fences.add(fence(2))
    assert.strictEqual(fences.passed.revision, -1)
    fences.advance(1_000n)
    assert.strictEqual(fences.passed.revision, 2)
  })

  it("leaves out fences when many wait, and never passes a fence before its position", () => {
    const fences = new FenceQueue()
    for (let revision = 1; revision <= 100_000; revision++) fences.add(fence(revision))
    for (const revision of [0, 1, 50_000, 99_999, 100_000]) {
      fences.advance(BigInt(revision * 100))
      assert.isAtMost(fences.passed.revision, revision)
    }
    assert.strictEqual(fences.passed.revision, 100_000)
  })
})
