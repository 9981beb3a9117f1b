/**
 * Returns the shares of items whose popularity follows Zipf's law, the most popular one first: the share of rank r,
 * counted from 1, is proportional to 1 / r^exponent.
 */
export const makeZipfShares = (count: number, exponent: number): Float64Array => {
  const shares = Float64Array.from({ length: count }, (_, index) => (index + 1) ** -exponent)
  // The smallest are added first, so that the rounding errors stay small.
  const total = shares.reduceRight((sum, share) => sum + share, 0)
  return shares.map((share) => share / total)
}

/**
 * Returns a function that draws indices with the given shares, by inversion of the cumulative distribution.
 *
 * @param nextUniform returns numbers of at least 0 and less than 1
 */
export const makeSampler = (shares: Float64Array, nextUniform: () => number): (() => number) => {
  const cumulative = new Float64Array(shares.length)
  let sum = 0
  for (const [index, share] of shares.entries()) cumulative[index] = sum += share
  // Rounding may leave the sum below the largest number that is drawn.
  cumulative[shares.length - 1] = 1
  return () => {
    const drawn = nextUniform()
    let [low, high] = [0, shares.length - 1]
    while (low < high) {
      const middle = (low + high) >> 1
      if (cumulative[middle]! > drawn) high = middle
      else low = middle + 1
    }
    return low
  }
}
