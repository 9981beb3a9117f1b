import { variables } from "../../adapters/inbound/cli/input/Environment.ts"

/** Other programs have variables that resemble shorter names, such as `HOME` and `TMP`. */
const minLength = 8

/** The maximum number of characters that a misspelled name adds, omits or replaces. */
const maxDistance = 2

/** Returns the number of characters to add, to omit or to replace in `a` to get `b` (the Levenshtein distance). */
const countDifferences = (a: string, b: string): number => {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index)
  for (const [index, character] of [...a].entries()) {
    const next = [index + 1]
    for (const [column, other] of [...b].entries()) {
      const replaced = (row[column] ?? 0) + (character === other ? 0 : 1)
      next.push(Math.min(replaced, (row[column + 1] ?? 0) + 1, (next[column] ?? 0) + 1))
    }
    row = next
  }
  return row[b.length] ?? 0
}

const isSimilar = (name: string, known: string): boolean =>
  Math.abs(name.length - known.length) <= maxDistance &&
  countDifferences(name.toUpperCase(), known) <= maxDistance

/**
 * Returns a warning for each variable of an environment that this program does not read and whose name resembles a
 * variable that the program reads and that is not set, such as `DATABASE_URI`.
 */
export const findSimilarNames = (
  env: Readonly<Record<string, string | undefined>>
): ReadonlyArray<string> => {
  const unset = Object.keys(variables).filter(
    (known) => known.length >= minLength && env[known] === undefined
  )
  return Object.keys(env).flatMap((name) => {
    const known = Object.hasOwn(variables, name) ? undefined : unset.find((known) => isSimilar(name, known))
    return known === undefined ? [] : [`The environment variable ${name} is not used; did you mean ${known}?`]
  })
}
