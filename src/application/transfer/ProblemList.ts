import * as SchemaIssue from "effect/SchemaIssue"
import type { Problem } from "../../domain/workspace/Problem.ts"

/** Maximum number of reported problems. Further problems are only counted. */
export const maxProblems = 100

/** The first problems of an import, and the number of all problems. */
export class ProblemList {
  readonly first: Array<Problem> = []
  count = 0

  add(path: string, message: string): void {
    this.count++
    if (this.first.length < maxProblems) this.first.push({ path, message })
  }

  /**
   * Adds `count` problems. `first` contains the first of these problems: at least `maxProblems` of them, or all if
   * there are fewer.
   */
  addAll(first: ReadonlyArray<Problem>, count: number): void {
    this.count += count
    this.first.push(...first.slice(0, maxProblems - this.first.length))
  }
}

/** Converts the issue of a failed schema check to a list of paths and messages. */
export const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()
