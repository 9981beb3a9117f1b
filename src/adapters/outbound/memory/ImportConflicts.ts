import type { Archive } from "../../../application/formats/Archive.ts"
import type { Problem } from "../../../domain/Problem.ts"
import type { State, Workspace } from "./MemoryState.ts"

type Located = readonly [path: string, id: string]

const at = (list: string, items: ReadonlyArray<{ readonly id: string }>): ReadonlyArray<Located> =>
  items.map(({ id }, index) => [`${list}[${index}].id`, id])

/** The ids that are a workspace's own, by kind, each with its path in an archive. */
const ownIds = ({ folders, tags, fragments, prompts }: Omit<Workspace, "workspace">) => ({
  folders: at("folders", folders),
  tags: at("tags", tags),
  fragments: at("fragments", fragments),
  prompts: at("prompts", prompts),
  uses: prompts.flatMap((prompt, index) => at(`prompts[${index}].fragments`, prompt.fragments)),
  versions: prompts.flatMap((prompt, index) => at(`prompts[${index}].versions`, prompt.versions))
})

const contentConflicts = (state: State["Service"], archive: Archive): ReadonlyArray<Problem> => {
  const others = [...state.workspaces.values()]
    .filter(({ workspace }) => workspace.id !== archive.workspace.id)
    .map(ownIds)
  const own = ownIds(archive)
  return Object.keys(own).flatMap((key) => {
    const kind = key as keyof typeof own
    const taken = new Set(others.flatMap((other) => other[kind].map(([, id]) => id)))
    return own[kind]
      .filter(([, id]) => taken.has(id))
      .map(([path]) => ({ path, message: "is another workspace's" }))
  })
}

const userConflicts = ({ users }: State["Service"], archive: Archive): ReadonlyArray<Problem> =>
  archive.users.flatMap(({ id, email }, index) => {
    const sameEmail = (other: string) => other.toLowerCase() === email.toLowerCase()
    const byId = users.get(id)
    const byEmail = [...users.values()].find((user) => sameEmail(user.email))
    return [
      ...(byId !== undefined && !sameEmail(byId.email)
        ? [{ path: `users[${index}].id`, message: "is another user's" }]
        : []),
      ...(byEmail !== undefined && byEmail.id !== id
        ? [{ path: `users[${index}].email`, message: "is another user's" }]
        : [])
    ]
  })

const keyConflicts = ({ keys }: State["Service"], archive: Archive): ReadonlyArray<Problem> =>
  archive.api_keys.flatMap(({ id, key_hash }, index) => {
    const workspace = keys.get(id)?.workspace_id ?? archive.workspace.id
    const byHash = [...keys.values()].find((key) => key.key_hash === key_hash)
    return [
      ...(workspace !== archive.workspace.id
        ? [{ path: `api_keys[${index}].id`, message: "is another workspace's" }]
        : []),
      ...(byHash !== undefined && byHash.id !== id
        ? [{ path: `api_keys[${index}].key_hash`, message: "is another key's" }]
        : [])
    ]
  })

/** What in an archive belongs to another workspace, user or key, with the path of each (DESIGN.md section 9). */
export const conflicts = (state: State["Service"], archive: Archive): ReadonlyArray<Problem> => [
  ...userConflicts(state, archive),
  ...keyConflicts(state, archive),
  ...contentConflicts(state, archive)
]
