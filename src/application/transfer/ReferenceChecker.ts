import type { PromptVersion, WorkspacePrompt } from "../../domain/Workspace.ts"
import type { Archive } from "./Archive.ts"
import { ProblemList } from "./ProblemList.ts"

const duplicate = "is a duplicate"

/** The references to items that do not exist. */
class MissingItems {
  /** The path of the first reference to each id, and the number of references. */
  readonly #references = new Map<string, { readonly path: string; count: number }>()

  add(path: string, id: string): void {
    const reference = this.#references.get(id)
    if (reference === undefined) this.#references.set(id, { path, count: 1 })
    else reference.count++
  }

  /** Adds one problem for each id, at the path of its first reference. */
  report(problems: ProblemList, message: string): void {
    for (const { path, count } of this.#references.values()) {
      const others = count - 1
      const more =
        others === 0 ? "" : `; ${others} other reference${others === 1 ? " has" : "s have"} the same id`
      problems.add(path, message + more)
    }
  }
}

/** Adds a problem for each value that a set already contains. */
class UniqueValues {
  readonly #values = new Set<string>()
  readonly #problems: ProblemList

  constructor(problems: ProblemList) {
    this.#problems = problems
  }

  /** Returns true if the value is new. */
  add(path: string, value: string): boolean {
    if (this.#values.has(value)) {
      this.#problems.add(path, duplicate)
      return false
    }
    this.#values.add(value)
    return true
  }
}

/** Checks that the numbers of a prompt's versions are unique, and that each parent is an earlier version. */
const checkVersions = (versions: ReadonlyArray<PromptVersion>, path: string, problems: ProblemList): void => {
  const numbers = new Set<number>()
  const numberById = new Map(versions.map(({ id, version_number }) => [id, version_number]))
  for (const [index, { version_number, parent_version_id }] of versions.entries()) {
    const isNewNumber = !numbers.has(version_number)
    if (!isNewNumber) problems.add(`${path}[${index}].version_number`, duplicate)
    numbers.add(version_number)
    if (parent_version_id === null) continue
    const parent = numberById.get(parent_version_id)
    const parentPath = `${path}[${index}].parent_version_id`
    if (parent === undefined) problems.add(parentPath, "is not a version of this prompt")
    else if (isNewNumber && parent >= version_number) problems.add(parentPath, "is not an earlier version")
  }
}

/** The lists with items to which other items refer. */
type ReferenceTarget = "users" | "folders" | "tags" | "fragments"

/**
 * Finds the problems that the schema of an archive cannot find: duplicates, references to items that do not exist, and
 * versions whose parent is not an earlier version of the same prompt. Several references to one missing item are one
 * problem. An item with the id of an earlier item is one problem, even if other unique values are also equal.
 */
export const checkReferences = (archive: Archive): ProblemList => {
  const problems = new ProblemList()
  const makeTarget = (list: ReferenceTarget) => ({
    ids: new Set<string>(archive[list].map(({ id }) => id)),
    missing: new MissingItems()
  })
  const targets = {
    users: makeTarget("users"),
    folders: makeTarget("folders"),
    tags: makeTarget("tags"),
    fragments: makeTarget("fragments")
  }
  const otherWorkspaces = new MissingItems()
  const requireItem = (list: ReferenceTarget, path: string, id: string) => {
    const { ids, missing } = targets[list]
    if (!ids.has(id)) missing.add(path, id)
  }
  /** Checks that ids are unique in a list, and runs `check` for each item with a new id. */
  const requireUniqueIds = <A extends { readonly id: string }>(
    list: string,
    items: ReadonlyArray<A>,
    check: (item: A, path: string) => void = () => {}
  ) => {
    const ids = new UniqueValues(problems)
    for (const [index, item] of items.entries()) {
      const path = `${list}[${index}]`
      if (ids.add(`${path}.id`, item.id)) check(item, path)
    }
  }

  const [emails, hashes, tagNames] = [
    new UniqueValues(problems),
    new UniqueValues(problems),
    new UniqueValues(problems)
  ]
  requireUniqueIds("users", archive.users, ({ email }, path) =>
    emails.add(`${path}.email`, email.toLowerCase())
  )
  requireUniqueIds("api_keys", archive.api_keys, ({ key_hash }, path) =>
    hashes.add(`${path}.key_hash`, key_hash)
  )
  for (const [index, { created_by, workspace_id }] of archive.api_keys.entries()) {
    requireItem("users", `api_keys[${index}].created_by`, created_by)
    if (workspace_id !== null && workspace_id !== archive.workspace.id)
      otherWorkspaces.add(`api_keys[${index}].workspace_id`, workspace_id)
  }
  requireUniqueIds("folders", archive.folders)
  requireUniqueIds("tags", archive.tags, ({ name }, path) => tagNames.add(`${path}.name`, name))
  requireUniqueIds("fragments", archive.fragments)

  const [bindingIds, versionIds] = [new UniqueValues(problems), new UniqueValues(problems)]
  requireUniqueIds("prompts", archive.prompts, ({ fragments, versions }, path) => {
    for (const [index, { id }] of fragments.entries()) bindingIds.add(`${path}.fragments[${index}].id`, id)
    for (const [index, { id }] of versions.entries()) versionIds.add(`${path}.versions[${index}].id`, id)
  })
  const checkPrompt = ({ folder_id, tags, fragments, versions }: WorkspacePrompt, path: string) => {
    if (folder_id !== null) requireItem("folders", `${path}.folder_id`, folder_id)
    const ownTags = new UniqueValues(problems)
    for (const [index, tag] of tags.entries()) {
      const tagPath = `${path}.tags[${index}]`
      if (ownTags.add(tagPath, tag)) requireItem("tags", tagPath, tag)
    }
    for (const [index, { fragment_id }] of fragments.entries())
      requireItem("fragments", `${path}.fragments[${index}].fragment_id`, fragment_id)
    checkVersions(versions, `${path}.versions`, problems)
  }
  for (const [index, prompt] of archive.prompts.entries()) checkPrompt(prompt, `prompts[${index}]`)

  otherWorkspaces.report(problems, "is the id of another workspace")
  for (const [list, { missing }] of Object.entries(targets)) missing.report(problems, `is not in ${list}`)
  return problems
}
