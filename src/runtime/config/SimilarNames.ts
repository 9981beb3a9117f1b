import { variables } from "../../adapters/inbound/cli/input/Environment.ts"

/** Counts the letters that are in only one of two names, in any order. */
const countDifferences = (a: string, b: string): number => {
  const onlyInB = [...b]
  let onlyInA = 0
  for (const letter of a) {
    const index = onlyInB.indexOf(letter)
    if (index < 0) onlyInA++
    else onlyInB.splice(index, 1)
  }
  return onlyInA + onlyInB.length
}

/**
 * Returns true if the names differ in at most one letter, or in at most two letters if `known` has 8 letters or more.
 * Variables of other programs, such as `POST`, resemble short names.
 */
const isSimilar = (name: string, known: string): boolean =>
  countDifferences(name.toUpperCase(), known) <= (known.length < 8 ? 1 : 2)

/**
 * Returns a warning for each variable that looks misspelled, such as `DATABASE_URI`. The program does not read such a
 * variable, and the name of the variable resembles an unset variable that the program reads.
 */
export const findSimilarNames = (
  env: Readonly<Record<string, string | undefined>>
): ReadonlyArray<string> => {
  const unset = Object.keys(variables).filter((known) => env[known] === undefined)
  return Object.keys(env).flatMap((name) => {
    const known = Object.hasOwn(variables, name) ? undefined : unset.find((known) => isSimilar(name, known))
    return known === undefined ? [] : [`The environment variable ${name} is not used; did you mean ${known}?`]
  })
}
