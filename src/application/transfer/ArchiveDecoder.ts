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
 * Finds the problems that the schema of an archive cannot find: duplicates, references to items that do not exist, and
 * versions whose parent is not an earlier version of the same prompt. An item with the id of an earlier item is one
 * problem, even if other unique values are also equal.
 */
const findReferenceProblems = (archive: Archive): ReadonlyArray<Problem> => {
  const problems: Array<Problem> = []
  const report = (path: string, message: string) => problems.push({ path, message })
  const known = new Map<string, Set<string>>()
  /** Returns true if no earlier value of this kind equals `value`. Otherwise, adds a problem. */
  const isUnique = (kind: string, path: string, value: string): boolean => {
    const values = known.get(kind) ?? new Set()
    known.set(kind, values)
    const isNew = !values.has(value)
    if (isNew) values.add(value)
    else report(path, "is a duplicate")
    return isNew
  }
  const collectIds = (items: ReadonlyArray<{ readonly id: string }>) => new Set(items.map(({ id }) => id))
  const ids = {
    users: collectIds(archive.users),
    folders: collectIds(archive.folders),
    tags: collectIds(archive.tags),
    fragments: collectIds(archive.fragments)
  }
  const requireItem = (list: keyof typeof ids, path: string, id: string) => {
    if (!ids[list].has(id)) report(path, `is not in ${list}`)
  }

  for (const [index, { id, email }] of archive.users.entries()) {
    const path = `users[${index}]`
    if (isUnique("users", `${path}.id`, id)) isUnique("emails", `${path}.email`, email.toLowerCase())
  }
  for (const [index, { id, key_hash, created_by, workspace_id }] of archive.api_keys.entries()) {
    const path = `api_keys[${index}]`
    if (isUnique("api_keys", `${path}.id`, id)) isUnique("hashes", `${path}.key_hash`, key_hash)
    requireItem("users", `${path}.created_by`, created_by)
    if (workspace_id !== null && workspace_id !== archive.workspace.id)
      report(`${path}.workspace_id`, "is the id of another workspace")
  }
  for (const list of ["folders", "fragments"] as const)
    for (const [index, { id }] of archive[list].entries()) isUnique(list, `${list}[${index}].id`, id)
  for (const [index, { id, name }] of archive.tags.entries()) {
    const path = `tags[${index}]`
    if (isUnique("tags", `${path}.id`, id)) isUnique("tag names", `${path}.name`, name)
  }
  for (const [index, prompt] of archive.prompts.entries()) {
    const path = `prompts[${index}]`
    const { id, folder_id, tags, fragments, versions } = prompt
    const isNew = isUnique("prompts", `${path}.id`, id)
    if (folder_id !== null) requireItem("folders", `${path}.folder_id`, folder_id)
    for (const [position, tag] of tags.entries()) {
      const tagPath = `${path}.tags[${position}]`
      if (tags.indexOf(tag) < position) report(tagPath, "is a duplicate")
      else requireItem("tags", tagPath, tag)
    }
    for (const [position, fragment] of fragments.entries()) {
      const fragmentPath = `${path}.fragments[${position}]`
      if (isNew) isUnique("bindings", `${fragmentPath}.id`, fragment.id)
      requireItem("fragments", `${fragmentPath}.fragment_id`, fragment.fragment_id)
    }
    const numbers = new Set<number>()
    const numberById = new Map(versions.map(({ id, version_number }) => [id, version_number]))
    for (const [position, version] of versions.entries()) {
      const versionPath = `${path}.versions[${position}]`
      const { version_number, parent_version_id } = version
      if (isNew) isUnique("versions", `${versionPath}.id`, version.id)
      const isNewNumber = !numbers.has(version_number)
      if (!isNewNumber) report(`${versionPath}.version_number`, "is a duplicate")
      numbers.add(version_number)
      if (parent_version_id === null) continue
      const parent = numberById.get(parent_version_id)
      if (parent === undefined) report(`${versionPath}.parent_version_id`, "is not a version of this prompt")
      else if (isNewNumber && parent >= version_number)
        report(`${versionPath}.parent_version_id`, "is not an earlier version")
    }
  }
  return problems
}

/**
 * Decodes an archive from its parsed JSON. Fails with all problems. Checks references and duplicates only if all values
 * are valid.
 */
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
