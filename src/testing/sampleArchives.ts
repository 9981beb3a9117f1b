/** The times of the samples: several items share one. */
const times = ["2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00.001Z", "2026-03-01T12:00:00.000Z"] as const

const promptTypes = ["system", "user", "assistant", "template", "few-shot", "chain-of-thought"] as const

/** A key of a sample, with the hash of no known key. */
const makeKey = (
  id: string,
  owner: string,
  workspace: string | null,
  end: { readonly revoked_at?: string; readonly expires_at?: string } = {}
) => ({
  id,
  workspace_id: workspace,
  created_by: owner,
  name: "Sample",
  key_hash: id.replaceAll("-", "").padStart(64, "0"),
  key_start: "0000",
  key_end: id.slice(-4),
  created_at: times[0] as string,
  revoked_at: end.revoked_at ?? null,
  expires_at: end.expires_at ?? null
})

/**
 * Makes the archive of one workspace, as parsed JSON. It has prompts of every type, archived ones and ones that were
 * updated at the same time; tags whose names differ in case alone; fragments in one position, and one that is used
 * twice; versions with gaps in their numbers; and keys in every state.
 *
 * @param workspace A number that all ids of the workspace contain: the archives of two numbers have no common id.
 */
const makeArchive = (workspace: number) => {
  const prefix = `${workspace.toString(16).padStart(8, "0")}-0000-4000-8000-`
  let count = 0
  const makeId = (): string => `${prefix}${(++count).toString(16).padStart(12, "0")}`
  const id = makeId()
  const users = [false, true].map((must_reset_password) => {
    const user = makeId()
    return { id: user, email: `${user}@example.com`, must_reset_password }
  })
  const [owner, lockedOut] = users.map(({ id }) => id) as [string, string]
  const folders = ["Support", "Empty"].map((name) => ({ id: makeId(), name }))
  const tags = ["production", "Production", "draft", "größe"].map((name) => ({
    id: makeId(),
    name,
    color: "#0a1b2c"
  }))
  const fragments = [
    "Answer in a {{tone}} tone, in {{ language }}.",
    "Use at most {{words}} words. {{unbound}}"
  ].map((content, index) => ({ id: makeId(), name: `Fragment ${index}`, content }))
  const makeVersions = (index: number) =>
    [1, 2, 4].slice(0, index % 4).map((version_number, position) => ({
      id: makeId(),
      version_number,
      content: `Version ${version_number} of prompt ${index}`,
      change_summary: `Change ${version_number}`,
      change_source: "manual",
      parent_version_id: null as string | null,
      metadata: { applied_suggestions: position, nested: { list: [1, "two", null, true] } },
      created_at: times[position] as string
    }))
  const makeFragments = (index: number) =>
    [
      { fragment: 1, position: 2, variable_overrides: { words: 120, unbound: null } },
      { fragment: 0, position: 1, variable_overrides: { tone: "friendly", language: "{{tone}}" } },
      { fragment: 0, position: 2, variable_overrides: { tone: true } }
    ]
      .slice(0, index % 4)
      .map(({ fragment, ...rest }) => ({
        id: makeId(),
        fragment_id: fragments[fragment]?.id as string,
        ...rest
      }))
  const prompts = Array.from({ length: 12 }, (_, index) => ({
    id: makeId(),
    title: `Prompt ${index}`,
    description: `Describes prompt ${index}`,
    current_content: `Content ${index} for {{customer}}`,
    prompt_type: promptTypes[index % promptTypes.length] as (typeof promptTypes)[number],
    target_model: "model",
    intent: "intent",
    current_version: index,
    folder_id: (index % 3 === 0 ? folders[0]?.id : null) as string | null,
    is_favorite: index % 2 === 0,
    is_archived: index % 5 === 4,
    sort_order: -index,
    created_at: times[0] as string,
    updated_at: times[index % 3] as string,
    tags: tags.filter((_, tag) => (index >> tag) % 2 === 1).map((tag) => tag.id),
    fragments: makeFragments(index),
    versions: makeVersions(index)
  }))
  return {
    format: "prompt-retrieval/workspace@1",
    workspace: { id, name: `Workspace ${workspace}`, tier: "solo", billing_status: "active" },
    users,
    api_keys: [
      makeKey(makeId(), owner, id),
      makeKey(makeId(), owner, id, { revoked_at: times[1] }),
      makeKey(makeId(), owner, id, { expires_at: times[2] }),
      makeKey(makeId(), lockedOut, id),
      makeKey(makeId(), owner, null)
    ],
    folders,
    tags,
    fragments,
    prompts
  }
}

/** A workspace with its content, as parsed JSON: the workspace archive that `prompt-retrieval export` writes. */
export type WorkspaceArchive = ReturnType<typeof makeArchive>

/** Two workspaces that have equal content under other ids. */
export const sampleArchives: ReadonlyArray<WorkspaceArchive> = [makeArchive(1), makeArchive(2)]
