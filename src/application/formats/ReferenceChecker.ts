import type { PromptVersion, StoredKey, WorkspacePrompt } from "../../domain/Workspace.ts"
import type { WorkspaceList, WorkspacePart } from "../../domain/WorkspaceParts.ts"
import { ProblemList } from "./ProblemList.ts"

const duplicate = "is a duplicate"

/** Sets of ids and other values that must be unique, by kind. */
class UniqueValues {
  readonly #values = new Map<string, Set<string>>()

  /** Adds a value. Returns false if it was added before. */
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

/**
 * Collects the problems of a workspace that no single part reveals: duplicates, references to items that do not exist, and
 * versions out of order. Keeps only ids and other unique values in memory.
 */
export class ReferenceChecker {
  readonly problems = new ProblemList()
  readonly #seen = new UniqueValues()
  #workspace: string | undefined

  /** Compares a part with the parts before it. */
  check(part: WorkspacePart, path: string): void {
    if (part.list === "workspace") {
      this.#workspace = part.item.id
      return
    }
    this.#requireUnique(`${path}.id`, part.list, part.item.id)
    switch (part.list) {
      case "users":
        this.#requireUnique(`${path}.email`, "emails", part.item.email.toLowerCase())
        break
      case "api_keys":
        this.#checkKey(part.item, path)
        break
      case "tags":
        this.#requireUnique(`${path}.name`, "tag names", part.item.name)
        break
      case "prompts":
        this.#checkPrompt(part.item, path)
    }
  }

  #requireUnique(path: string, kind: string, value: string): void {
    if (!this.#seen.add(kind, value)) this.problems.add(path, duplicate)
  }

  #requireKnown(path: string, list: WorkspaceList, id: string | null): void {
    if (id !== null && !this.#seen.has(list, id)) this.problems.add(path, `is not in ${list}`)
  }

  #checkKey(key: StoredKey, path: string): void {
    this.#requireUnique(`${path}.key_hash`, "hashes", key.key_hash)
    this.#requireKnown(`${path}.created_by`, "users", key.created_by)
    if (key.workspace_id !== null && key.workspace_id !== this.#workspace)
      this.problems.add(`${path}.workspace_id`, "is the id of another workspace")
  }

  #checkPrompt(prompt: WorkspacePrompt, path: string): void {
    this.#requireKnown(`${path}.folder_id`, "folders", prompt.folder_id)
    const tags = new Set<string>()
    for (const [index, tag] of prompt.tags.entries()) {
      const tagPath = `${path}.tags[${index}]`
      if (tags.has(tag)) this.problems.add(tagPath, duplicate)
      tags.add(tag)
      this.#requireKnown(tagPath, "tags", tag)
    }
    for (const [index, fragment] of prompt.fragments.entries()) {
      const fragmentPath = `${path}.fragments[${index}]`
      this.#requireUnique(`${fragmentPath}.id`, "prompt fragments", fragment.id)
      this.#requireKnown(`${fragmentPath}.fragment_id`, "fragments", fragment.fragment_id)
    }
    this.#checkVersions(prompt.versions, `${path}.versions`)
  }

  #checkVersions(versions: ReadonlyArray<PromptVersion>, path: string): void {
    const numbers = new Set<number>()
    const numberById = new Map(versions.map(({ id, version_number }) => [id, version_number]))
    for (const [index, { id, version_number, parent_version_id }] of versions.entries()) {
      const versionPath = `${path}[${index}]`
      if (numbers.has(version_number)) this.problems.add(`${versionPath}.version_number`, duplicate)
      numbers.add(version_number)
      this.#requireUnique(`${versionPath}.id`, "versions", id)
      if (parent_version_id === null) continue
      const parent = numberById.get(parent_version_id)
      if (parent === undefined)
        this.problems.add(`${versionPath}.parent_version_id`, "is not a version of this prompt")
      else if (parent >= version_number)
        this.problems.add(`${versionPath}.parent_version_id`, "is not an earlier version")
    }
  }
}
