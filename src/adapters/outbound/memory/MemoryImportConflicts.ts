import type { Archive } from "../../../application/formats/Archive.ts"
import { ProblemList } from "../../../application/formats/ProblemList.ts"
import { type Problem, toConflict } from "../../../domain/workspace/Problem.ts"
import type { MemoryState, MemoryWorkspace } from "./MemoryState.ts"

type Located = readonly [path: string, id: string]

const locate = (list: string, items: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<Located> =>
  items.map(({ id }, index) => [`${list}[${index}].id`, id])

/** Returns the ids of a workspace's content, grouped by kind. Each id has its path in an archive. */
const locateIds = ({ folders, tags, fragments, prompts }: Omit<MemoryWorkspace, "workspace">) => ({
  folders: locate("folders", folders),
  tags: locate("tags", tags),
  fragments: locate("fragments", fragments),
  prompts: locate("prompts", prompts),
  promptFragments: prompts.flatMap((prompt, index) =>
    locate(`prompts[${index}].fragments`, prompt.fragments)
  ),
  versions: prompts.flatMap((prompt, index) => locate(`prompts[${index}].versions`, prompt.versions))
})

const findContentConflicts = (state: MemoryState["Service"], archive: Archive): ReadonlyArray<Problem> => {
  const others = [...state.workspaces.values()]
    .filter(({ workspace }) => workspace.id !== archive.workspace.id)
    .map(locateIds)
  const own = locateIds(archive)
  return Object.keys(own).flatMap((key) => {
    const kind = key as keyof typeof own
    const otherIds = new Set(others.flatMap((other) => other[kind].map(([, id]) => id)))
    return own[kind].filter(([, id]) => otherIds.has(id)).map(([path]) => toConflict(path, "workspace"))
  })
}

const findUserConflicts = ({ users }: MemoryState["Service"], archive: Archive): ReadonlyArray<Problem> =>
  archive.users.flatMap(({ id, email }, index) => {
    const hasSameEmail = (other: string) => other.toLowerCase() === email.toLowerCase()
    const byId = users.get(id)
    const byEmail = [...users.values()].find((user) => hasSameEmail(user.email))
    return [
      ...(byId !== undefined && !hasSameEmail(byId.email) ? [toConflict(`users[${index}].id`, "user")] : []),
      ...(byEmail !== undefined && byEmail.id !== id ? [toConflict(`users[${index}].email`, "user")] : [])
    ]
  })

const findKeyConflicts = ({ keys }: MemoryState["Service"], archive: Archive): ReadonlyArray<Problem> =>
  archive.api_keys.flatMap(({ id, key_hash }, index) => {
    const workspace = keys.get(id)?.workspace_id ?? archive.workspace.id
    const byHash = [...keys.values()].find((key) => key.key_hash === key_hash)
    return [
      ...(workspace !== archive.workspace.id ? [toConflict(`api_keys[${index}].id`, "workspace")] : []),
      ...(byHash !== undefined && byHash.id !== id ? [toConflict(`api_keys[${index}].key_hash`, "key")] : [])
    ]
  })

/**
 * Finds the ids, emails and key hashes of an archive that belong to another workspace, user or key. Each problem names
 * the path of the value.
 */
export const findConflicts = (state: MemoryState["Service"], archive: Archive): ProblemList => {
  const problems = new ProblemList()
  const finders = [findUserConflicts, findKeyConflicts, findContentConflicts]
  for (const { path, message } of finders.flatMap((find) => find(state, archive))) problems.add(path, message)
  return problems
}
