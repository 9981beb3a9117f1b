import type { PromptVersion, StoredKey, WorkspacePrompt } from "../../domain/workspace/Workspace.ts"
import type { WorkspacePart } from "../../domain/workspace/WorkspaceParts.ts"
import { ProblemList } from "./ProblemList.ts"

const duplicate = "is a duplicate"

/** Sets of ids and other values that must be unique, by kind. */
class UniqueValues {
  readonly #values = new Map<string, Set<string>>()

  /** Adds a value. Returns false if the value was added before. */
  add(kind: string, value: string): boolean {
    const values = this.#values.get(kind) ?? new Set()
    if (values.has(value)) return false
    this.#values.set(kind, values.add(value))
    return true
  }

  has(kind: string, value: string): boolean {
    return this.#values.get(kind)?.has(value) === true
  }
}

/** The lists with items to which other items refer. */
type ReferenceTarget = "users" | "folders" | "tags" | "fragments"

/** The references to an item that was not read yet: the path of the first reference, and the number of references. */
interface PendingReferences {
  readonly path: string
  count: number
}

/**
 * The references to items that were not read yet, by the id of the item, in the order of the first reference to each
 * id.
 */
class References {
  readonly #pending = new Map<string, PendingReferences>()

  add(path: string, id: string): void {
    const pending = this.#pending.get(id)
    if (pending === undefined) this.#pending.set(id, { path, count: 1 })
    else pending.count++
  }

  resolve(id: string): void {
    this.#pending.delete(id)
  }

  /** Adds one problem for each id that does not exist, at the path of its first reference. */
  report(problems: ProblemList, message: string): void {
    for (const { path, count } of this.#pending.values()) {
      const others = count - 1
      const more =
        others === 0 ? "" : `; ${others} other reference${others === 1 ? " has" : "s have"} the same id`
      problems.add(path, message + more)
    }
  }
}

/**
 * Collects the problems that the schemas of the parts cannot find: duplicates, references to items that do not exist,
 * and versions whose parent is not an earlier version of the same prompt. The parts may come in any order. Several
 * references to one missing item of a list are reported as one problem. An item with the id of an earlier item is one
 * problem, even if other values that must be unique are also equal. Keeps ids, other unique values and paths in memory,
 * but no parts.
 */
export class ReferenceChecker {
  readonly problems = new ProblemList()
  readonly #seen = new UniqueValues()
  readonly #unresolved: Readonly<Record<ReferenceTarget, References>> = {
    users: new References(),
    folders: new References(),
    tags: new References(),
    fragments: new References()
  }
  /** The references of keys to workspaces. */
  readonly #workspaces = new References()
  #workspace: string | undefined

  /** Checks a part against the parts before it. */
  check(part: WorkspacePart, path: string): void {
    if (part.list === "workspace") {
      this.#workspace = part.item.id
      return
    }
    const isNew = this.#requireUnique(`${path}.id`, part.list, part.item.id)
    switch (part.list) {
      case "users":
        this.#unresolved.users.resolve(part.item.id)
        if (isNew) this.#requireUnique(`${path}.email`, "emails", part.item.email.toLowerCase())
        break
      case "api_keys":
        if (isNew) this.#requireUnique(`${path}.key_hash`, "hashes", part.item.key_hash)
        this.#checkKey(part.item, path)
        break
      case "tags":
        this.#unresolved.tags.resolve(part.item.id)
        if (isNew) this.#requireUnique(`${path}.name`, "tag names", part.item.name)
        break
      case "folders":
      case "fragments":
        this.#unresolved[part.list].resolve(part.item.id)
        break
      case "prompts":
        this.#checkPrompt(part.item, path, isNew)
    }
  }

  /** Adds the problems of references to items that no part contained. Call this method once, after the last part. */
  end(): void {
    if (this.#workspace !== undefined) this.#workspaces.resolve(this.#workspace)
    this.#workspaces.report(this.problems, "is the id of another workspace")
    for (const [list, references] of Object.entries(this.#unresolved)) {
      references.report(this.problems, `is not in ${list}`)
    }
  }

  #requireUnique(path: string, kind: string, value: string): boolean {
    const isNew = this.#seen.add(kind, value)
    if (!isNew) this.problems.add(path, duplicate)
    return isNew
  }

  #requireKnown(path: string, list: ReferenceTarget, id: string | null): void {
    if (id !== null && !this.#seen.has(list, id)) this.#unresolved[list].add(path, id)
  }

  #checkKey(key: StoredKey, path: string): void {
    this.#requireKnown(`${path}.created_by`, "users", key.created_by)
    if (key.workspace_id !== null) this.#workspaces.add(`${path}.workspace_id`, key.workspace_id)
  }

  #checkPrompt(prompt: WorkspacePrompt, path: string, isNew: boolean): void {
    this.#requireKnown(`${path}.folder_id`, "folders", prompt.folder_id)
    const tags = new Set<string>()
    for (const [index, tag] of prompt.tags.entries()) {
      const tagPath = `${path}.tags[${index}]`
      if (tags.has(tag)) this.problems.add(tagPath, duplicate)
      else this.#requireKnown(tagPath, "tags", tag)
      tags.add(tag)
    }
    for (const [index, fragment] of prompt.fragments.entries()) {
      const fragmentPath = `${path}.fragments[${index}]`
      if (isNew) this.#requireUnique(`${fragmentPath}.id`, "prompt fragments", fragment.id)
      this.#requireKnown(`${fragmentPath}.fragment_id`, "fragments", fragment.fragment_id)
    }
    this.#checkVersions(prompt.versions, `${path}.versions`, isNew)
  }

  #checkVersions(versions: ReadonlyArray<PromptVersion>, path: string, isNewPrompt: boolean): void {
    const numbers = new Set<number>()
    const numberById = new Map(versions.map(({ id, version_number }) => [id, version_number]))
    for (const [index, { id, version_number, parent_version_id }] of versions.entries()) {
      const versionPath = `${path}[${index}]`
      const isNewNumber = !numbers.has(version_number)
      if (!isNewNumber) this.problems.add(`${versionPath}.version_number`, duplicate)
      numbers.add(version_number)
      if (isNewPrompt) this.#requireUnique(`${versionPath}.id`, "versions", id)
      if (parent_version_id === null) continue
      const parent = numberById.get(parent_version_id)
      if (parent === undefined)
        this.problems.add(`${versionPath}.parent_version_id`, "is not a version of this prompt")
      else if (isNewNumber && parent >= version_number)
        this.problems.add(`${versionPath}.parent_version_id`, "is not an earlier version")
    }
  }
}
