import * as SchemaIssue from "effect/SchemaIssue"
import type { Problem } from "../../domain/WorkspaceContent.ts"

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
}

/** Converts the issue of a failed schema check to a list of paths and messages. */
export const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()
