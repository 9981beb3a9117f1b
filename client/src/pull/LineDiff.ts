/** How many unchanged lines surround a change. */
const contextLines = 3

/** The greatest number of differences that are searched for; texts that differ more are shown as replaced. */
const maxDifferences = 1_000

/** A line of a comparison: unchanged, removed or added. */
type Edit = readonly [kind: " " | "-" | "+", line: string]

const replaceAll = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): ReadonlyArray<Edit> => [
  ...before.map((line): Edit => ["-", line]),
  ...after.map((line): Edit => ["+", line])
]

/** Finds a shortest sequence of edits, by Myers' algorithm. */
const findEdits = (before: ReadonlyArray<string>, after: ReadonlyArray<string>): ReadonlyArray<Edit> => {
  const [rows, columns] = [before.length, after.length]
  /** For each number of differences, the furthest row that each diagonal reached before. */
  const traces: Array<ReadonlyMap<number, number>> = []
  const furthest = new Map([[1, 0]])
  const isDown = (reached: ReadonlyMap<number, number>, diagonal: number, differences: number) =>
    diagonal === -differences ||
    (diagonal !== differences && reached.get(diagonal - 1)! < reached.get(diagonal + 1)!)
  for (let differences = 0; differences <= Math.min(rows + columns, maxDifferences); differences++) {
    traces.push(new Map(furthest))
    for (let diagonal = -differences; diagonal <= differences; diagonal += 2) {
      let row = isDown(furthest, diagonal, differences)
        ? furthest.get(diagonal + 1)!
        : furthest.get(diagonal - 1)! + 1
      while (row < rows && row - diagonal < columns && before[row] === after[row - diagonal]) row++
      furthest.set(diagonal, row)
      if (row < rows || row - diagonal < columns) continue
      const edits: Array<Edit> = []
      let [x, y] = [rows, columns]
      for (let step = differences; step >= 0; step--) {
        const reached = traces[step]!
        const isInsertion = isDown(reached, x - y, step)
        const previous = x - y + (isInsertion ? 1 : -1)
        const start = reached.get(previous)!
        while (x > start && y > start - previous && x > 0 && y > 0 && before[x - 1] === after[y - 1]) {
          edits.push([" ", before[--x]!])
          y--
        }
        if (step > 0) edits.push(isInsertion ? ["+", after[--y]!] : ["-", before[--x]!])
      }
      return edits.reverse()
    }
  }
  return replaceAll(before, after)
}

/** Compares two lists of lines. Returns the lines of a unified diff without its file headers; none if they are equal. */
export const diffLines = (
  before: ReadonlyArray<string>,
  after: ReadonlyArray<string>
): ReadonlyArray<string> => {
  let start = 0
  while (start < Math.min(before.length, after.length) && before[start] === after[start]) start++
  let end = 0
  while (end < Math.min(before.length, after.length) - start && before.at(-1 - end) === after.at(-1 - end))
    end++
  const keep = (lines: ReadonlyArray<string>) => lines.map((line): Edit => [" ", line])
  const edits = [
    ...keep(before.slice(0, start)),
    ...findEdits(before.slice(start, before.length - end), after.slice(start, after.length - end)),
    ...keep(before.slice(before.length - end))
  ]
  const changed = edits.flatMap(([kind], index) => (kind === " " ? [] : [index]))
  const output: Array<string> = []
  for (let first = 0; first < changed.length; ) {
    let last = first
    while (last + 1 < changed.length && changed[last + 1]! - changed[last]! <= 2 * contextLines + 1) last++
    const from = Math.max(0, changed[first]! - contextLines)
    const to = Math.min(edits.length, changed[last]! + contextLines + 1)
    const count = (kind: "-" | "+", slice: ReadonlyArray<Edit>) =>
      slice.filter((edit) => edit[0] !== kind).length
    const hunk = edits.slice(from, to)
    const range = (other: "-" | "+") => {
      const [position, length] = [count(other, edits.slice(0, from)), count(other, hunk)]
      return `${length === 0 ? position : position + 1},${length}`
    }
    output.push(`@@ -${range("+")} +${range("-")} @@`, ...hunk.map(([kind, line]) => kind + line))
    first = last + 1
  }
  return output
}
