/**
 * Tests stores for `createPromptApi` against their contracts. Needs no database. In a checkout, run `npm run build`
 * first.
 *
 *     npx node --test examples/store-testing.ts
 */
import { test } from "node:test"
import type { HostKeyStore, HostPromptRepo } from "prompt-retrieval"
import { paginate } from "prompt-retrieval/domain/Page"
import { checkKeyStore, checkPromptRepo, type WorkspaceArchive } from "prompt-retrieval/testing"

const descending = (a: string, b: string): number => (a < b ? 1 : a > b ? -1 : 0)

/** The code under test: prompts that are read from workspace archives. */
const makePromptRepo = (archives: ReadonlyArray<WorkspaceArchive>): HostPromptRepo => {
  const find = (workspaceId: string, id: string) => {
    const archive = archives.find(({ workspace }) => workspace.id === workspaceId)
    const prompt = archive?.prompts.find((prompt) => prompt.id === id)
    return archive && prompt && { archive, prompt }
  }
  const findTags = ({ tags }: WorkspaceArchive, prompt: WorkspaceArchive["prompts"][number]) =>
    tags.filter(({ id }) => prompt.tags.includes(id)).sort((a, b) => descending(b.name, a.name))

  return {
    list: async (workspaceId, { folder_id, tag, type }, page) => {
      const archive = archives.find(({ workspace }) => workspace.id === workspaceId)
      const prompts = archive?.prompts.filter(
        (prompt) =>
          !prompt.is_archived &&
          (folder_id === undefined || prompt.folder_id === folder_id) &&
          (type === undefined || prompt.prompt_type === type) &&
          (tag === undefined || findTags(archive, prompt).some(({ name }) => name === tag))
      )
      const order = ({ updated_at, id }: { updated_at: string; id: string }) => updated_at + id
      return paginate(
        (prompts ?? []).sort((a, b) => descending(order(a), order(b))),
        page
      )
    },
    get: async (workspaceId, id) => {
      const found = find(workspaceId, id)
      return found && { ...found.prompt, tags: findTags(found.archive, found.prompt) }
    },
    getSource: async (workspaceId, id) => {
      const found = find(workspaceId, id)
      if (found === undefined) return undefined
      const fragments = found.prompt.fragments
        .toSorted((a, b) => a.position - b.position || descending(b.id, a.id))
        .map(({ fragment_id, variable_overrides }) => {
          const fragment = found.archive.fragments.find(({ id }) => id === fragment_id)
          return { content: fragment?.content ?? "", variable_overrides }
        })
      return { ...found.prompt, fragments }
    },
    listVersions: async (workspaceId, id, oldest, page) => {
      const versions = find(workspaceId, id)?.prompt.versions
      if (versions === undefined) return undefined
      const visible = versions.filter(({ created_at }) => oldest === undefined || created_at >= oldest)
      return paginate(
        visible.sort((a, b) => b.version_number - a.version_number),
        page
      )
    },
    getVersion: async (workspaceId, id, number, oldest) => {
      const version = find(workspaceId, id)?.prompt.versions.find((one) => one.version_number === number)
      const isVisible = oldest === undefined || (version !== undefined && version.created_at >= oldest)
      return version && isVisible ? { ...version, prompt_id: id } : undefined
    }
  }
}

/** The code under test: keys that are read from workspace archives. */
const makeKeyStore = (archives: ReadonlyArray<WorkspaceArchive>): HostKeyStore => ({
  find: async (hash) => {
    for (const { workspace, users, api_keys } of archives) {
      const key = api_keys.find(({ key_hash }) => key_hash === hash)
      if (key === undefined) continue
      const owner = users.find(({ id }) => id === key.created_by)
      return {
        id: key.id,
        revoked: key.revoked_at !== null,
        expires_at: key.expires_at,
        owner_must_reset: owner?.must_reset_password === true,
        workspace: key.workspace_id === null ? null : { id: workspace.id, tier: workspace.tier }
      }
    }
    return undefined
  }
})

test("the repository of prompts returns what its contract says", () => checkPromptRepo(makePromptRepo))

test("the store of keys returns what its contract says", () => checkKeyStore(makeKeyStore))
