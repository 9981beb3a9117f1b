import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import { findWaitSeconds } from "../../../../src/adapters/inbound/http/RequestContext.ts"

const parse = (prefer: string | undefined) =>
  findWaitSeconds({
    method: "GET",
    target: "/",
    headers: { prefer, "if-none-match": '"a"' },
    readBody: () => Effect.never,
    startWait: () => undefined
  })

it.each([
  ["wait=1", 1],
  ["wait=51", 50],
  ["wait=99999999999999999999999", 50],
  ["wait=010", 10],
  ['wait="10"', 10],
  ["WAIT = 7", 7],
  ["wait=10; foo=1", 10],
  ['foo;bar="a,b;\\"", wait=6', 6],
  ['foo="wait=3", wait=4', 4],
  [" , ,wait=2", 2],
  ["wait=5, wait=9", 5]
])("a request with the header Prefer: %s waits for at most %i s", (prefer, seconds) => {
  expect(parse(prefer)).toBe(seconds)
})

it.each([
  ...[undefined, "", "wait", "wait=", "wait=0", "wait=-1", "wait=1.5", "wait=0x10", "wait=x, wait=9"],
  ...['wait="1', "return=minimal; wait=3", 'foo="wait=3"']
])("a request with the header Prefer: %s does not wait", (prefer) => {
  expect(parse(prefer)).toBeUndefined()
})

it.each([
  ['"', '"'],
  ['a="', '\\"'],
  ["a;", '"\\"'],
  ["", "a,"],
  ["a", " "],
  ["", " "]
])("the time to parse Prefer: %s%s… is proportional to the length of the header", (start, repeated) => {
  const timeOnce = (prefer: string): number => {
    const startedAt = performance.now()
    for (let i = 0; i < 20; i++) parse(prefer)
    return performance.now() - startedAt
  }
  // Other processes and the garbage collector disturb the shortest of several times least.
  const time = (length: number): number => {
    const prefer = start + repeated.repeat(length / repeated.length)
    return Math.min(...Array.from({ length: 20 }, () => timeOnce(prefer)))
  }
  time(1_024)
  // For 16 times the length, a linear parser takes 16 times as long, and a quadratic parser takes 256 times as long.
  expect(time(16_384) / time(1_024)).toBeLessThan(64)
})
