export type Random = ReturnType<typeof makeRandom>

/** Makes functions that return the same random values for the same seed. */
export const makeRandom = (seed: number) => {
  let state = seed | 0
  /** Returns a number of at least 0 and less than 1 from the generator mulberry32. */
  const uniform = (): number => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const int = (limit: number): number => Math.floor(uniform() * limit)
  const pick = <A>(items: ReadonlyArray<A>): A => items[int(items.length)]!
  return {
    uniform,
    /** Returns an integer of at least 0 and less than the limit. */
    int,
    pick,
    /** Returns one of the items. The first element of an item is its relative frequency. */
    pickWeighted: <A extends readonly [weight: number, ...unknown: ReadonlyArray<unknown>]>(
      items: ReadonlyArray<A>
    ): A => pick(items.flatMap((item) => Array<A>(item[0]).fill(item))),
    /** Returns true with this probability. */
    chance: (probability: number): boolean => uniform() < probability
  }
}
