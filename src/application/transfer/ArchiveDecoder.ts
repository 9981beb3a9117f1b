import * as Result from "effect/Result"
import * as Schema from "effect/Schema"
import * as SchemaIssue from "effect/SchemaIssue"
import { InvalidContent, type Problem } from "../../domain/WorkspaceContent.ts"
import { Archive } from "./Archive.ts"

const decode = Schema.decodeUnknownResult(Archive, { errors: "all", onExcessProperty: "error" })

const formatIssue = SchemaIssue.makeFormatterStandardSchemaV1()

const formatPath = (segments: ReadonlyArray<unknown>): string =>
  segments
    .map((segment) => (typeof segment === "number" ? `[${segment}]` : `.${String(segment)}`))
    .join("")
    .replace(/^\./, "")

/**
 * Finds the problems that the schema of an archive cannot find: duplicates, references to missing items, and parents
 * that are not earlier versions of the same prompt. Reports an item that repeats an earlier id as one problem, even if
 * the item also repeats other unique values.
 */
const findReferenceProblems = (archive: Archive): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const report = (path: string, message: string) => problems.push({ path, message })
  const known = new Set<string>()
  /** Adds an item's unique fields. If `list` already has one of the values, reports a problem and returns false. */
  const addUnique = (
    list: string,
    path: string,
    fields: Readonly<Record<string, string | number>>
  ): boolean => {
    for (const [field, value] of Object.entries(fields)) {
      const key = `${list}.${field} ${value}`
      if (known.has(key)) {
        report(`${path}.${field}`, "is a duplicate")
        return false
      }
      known.add(key)
    }
    return true
  }
  const requireItem = (list: "users" | "folders" | "tags" | "fragments", path: string, id: string) => {
    if (!known.has(`${list}.id ${id}`)) report(path, `is not in ${list}`)
  }

  for (const [index, { id, email }] of archive.users.entries())
    addUnique("users", `users[${index}]`, { id, email: email.toLowerCase() })
  for (const [index, { id, key_hash, created_by, workspace_id }] of archive.api_keys.entries()) {
    const path = `api_keys[${index}]`
    addUnique("api_keys", path, { id, key_hash })
    requireItem("users", `${path}.created_by`, created_by)
    if (workspace_id !== null && workspace_id !== archive.workspace.id)
      report(`${path}.workspace_id`, "is the id of another workspace")
  }
  for (const list of ["folders", "fragments"] as const)
    for (const [index, { id }] of archive[list].entries()) addUnique(list, `${list}[${index}]`, { id })
  for (const [index, { id, name }] of archive.tags.entries())
    addUnique("tags", `tags[${index}]`, { id, name })
  for (const [index, { id, folder_id, tags, fragments, versions }] of archive.prompts.entries()) {
    const path = `prompts[${index}]`
    const isNew = addUnique("prompts", path, { id })
    if (folder_id !== null) requireItem("folders", `${path}.folder_id`, folder_id)
    for (const [position, tag] of tags.entries()) {
      const tagPath = `${path}.tags[${position}]`
      if (tags.indexOf(tag) < position) report(tagPath, "is a duplicate")
      else requireItem("tags", tagPath, tag)
    }
    for (const [position, { id, fragment_id }] of fragments.entries()) {
      const fragmentPath = `${path}.fragments[${position}]`
      if (isNew) addUnique("bindings", fragmentPath, { id })
      requireItem("fragments", `${fragmentPath}.fragment_id`, fragment_id)
    }
    const numbers = new Map(versions.map(({ id, version_number }) => [id, version_number]))
    for (const [position, { id, version_number, parent_version_id }] of versions.entries()) {
      const versionPath = `${path}.versions[${position}]`
      if (isNew) addUnique("versions", versionPath, { id })
      const isNewNumber = addUnique(path, versionPath, { version_number })
      if (parent_version_id === null) continue
      const parent = numbers.get(parent_version_id)
      if (parent === undefined) report(`${versionPath}.parent_version_id`, "is not a version of this prompt")
      else if (isNewNumber && parent >= version_number)
        report(`${versionPath}.parent_version_id`, "is not an earlier version")
    }
  }
  return problems
}

/** Decodes parsed JSON as an archive. Checks references and duplicates only if all values are valid. */
export const decodeArchive = (json: unknown): Result.Result<Archive, InvalidContent> => {
  const decoded = decode(json)
  const problems = Result.match(decoded, {
    onSuccess: findReferenceProblems,
    onFailure: ({ issue }) =>
      formatIssue(issue).issues.map(({ path = [], message }) => ({ path: formatPath(path), message }))
  })
  return Result.isSuccess(decoded) && problems.length === 0
    ? Result.succeed(decoded.success)
    : Result.fail(InvalidContent(problems))
}
