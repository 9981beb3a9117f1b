import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import { InvalidContent, type Problem } from "../../domain/WorkspaceContent.ts"
import { Archive } from "./Archive.ts"
import { formatIssue, maxProblems } from "./ProblemList.ts"
import { checkReferences } from "./ReferenceChecker.ts"

const decode = Schema.decodeUnknownResult(Archive, { errors: "all", onExcessProperty: "error" })

const formatPath = (segments: ReadonlyArray<unknown>): string =>
  segments
    .map((segment) => (typeof segment === "number" ? `[${segment}]` : `.${String(segment)}`))
    .join("")
    .replace(/^\./, "")

/** Returns true for a JSON object without any member of an archive, such as a `package.json`. */
const isOtherDocument = (json: unknown): boolean =>
  typeof json === "object" &&
  json !== null &&
  !Array.isArray(json) &&
  Object.keys(Archive.fields).every((name) => !Object.hasOwn(json, name))

const findFormatProblems = (json: unknown, { issue }: Schema.SchemaError): ReadonlyArray<Problem> => {
  if (isOtherDocument(json)) {
    const members = Object.keys(Archive.fields).join(", ")
    return [{ path: "", message: `is not a workspace archive: it has none of ${members}` }]
  }
  return formatIssue(issue).issues.map(({ path = [], message }) => ({ path: formatPath(path), message }))
}

/**
 * Decodes an archive from its parsed JSON. Fails with the first `maxProblems` problems and the number of all problems.
 * Checks references and duplicates only if all values are valid.
 */
export const decodeArchive = (json: unknown): Result.Result<Archive, InvalidContent> => {
  const decoded = decode(json)
  if (Result.isFailure(decoded)) {
    const problems = findFormatProblems(json, decoded.failure)
    return Result.fail(InvalidContent(problems.slice(0, maxProblems), problems.length))
  }
  const { first, count } = checkReferences(decoded.success)
  return count > 0 ? Result.fail(InvalidContent(first, count)) : Result.succeed(decoded.success)
}
