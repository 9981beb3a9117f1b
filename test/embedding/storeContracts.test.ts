import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import type { HostKeyStore, HostPromptRepo } from "../../src/index.ts"
import { checkKeyStore, checkPromptRepo, type WorkspaceArchive } from "../../src/testing.ts"
import { parseArchive } from "../support/archives.ts"
import { makeHostStores } from "../support/hostStores.ts"

/** Creates correct stores with the content of workspaces. */
const load = async (workspaces: ReadonlyArray<WorkspaceArchive>) => {
  const stores = await makeHostStores()
  for (const workspace of workspaces) await stores.importArchive(Result.getOrThrow(parseArchive(workspace)))
  return stores
}

type Archives = ReadonlyArray<WorkspaceArchive>

describe("checkPromptRepo", () => {
  it("accepts a correct store", async () => {
    await checkPromptRepo(async (workspaces) => (await load(workspaces)).promptRepo)
  })

  const faults: Record<string, (repo: HostPromptRepo, archives: Archives) => Partial<HostPromptRepo>> = {
    "lists the prompts of another workspace": (repo, [first]) => ({
      list: (_, filter, page) => repo.list(first!.workspace.id, filter, page)
    }),
    "gets a prompt of another workspace": (repo, archives) => ({
      get: async (_, id) => {
        const owner = archives.find(({ prompts }) => prompts.some((prompt) => prompt.id === id))
        return owner && repo.get(owner.workspace.id, id)
      }
    }),
    "ignores the folder": (repo) => ({
      list: (id, { folder_id: _, ...filter }, page) => repo.list(id, filter, page)
    }),
    "compares tags without case": (repo) => ({
      list: (id, filter, page) => repo.list(id, { ...filter, tag: filter.tag?.toLowerCase() }, page)
    }),
    "ignores the type": (repo) => ({
      list: (id, { type: _, ...filter }, page) => repo.list(id, filter, page)
    }),
    "counts pages from 0": (repo) => ({
      list: (id, filter, { page, per_page }) => repo.list(id, filter, { page: page + 1, per_page })
    }),
    "returns the number of items on the page as the total": (repo) => ({
      list: async (id, filter, page) => {
        const { items } = await repo.list(id, filter, page)
        return { items, total: items.length }
      }
    }),
    "lists the oldest prompts first": (repo) => ({
      list: async (id, filter, page) => {
        const { items, total } = await repo.list(id, filter, page)
        return { items: items.toReversed(), total }
      }
    }),
    "does not find archived prompts": (repo) => ({
      get: async (workspace, id) => {
        const found = await repo.get(workspace, id)
        return found?.is_archived === true ? undefined : found
      }
    }),
    "orders tags by their names without case": (repo) => ({
      get: async (workspace, id) => {
        const found = await repo.get(workspace, id)
        const compare = (a: { name: string }, b: { name: string }) =>
          a.name.toLowerCase() < b.name.toLowerCase() ? -1 : 1
        return found && { ...found, tags: found.tags.toSorted(compare) }
      }
    }),
    "returns fragments in the opposite order": (repo) => ({
      getSource: async (workspace, id) => {
        const found = await repo.getSource(workspace, id)
        return found && { ...found, fragments: found.fragments.toReversed() }
      }
    }),
    "leaves the overrides out": (repo) => ({
      getSource: async (workspace, id) => {
        const found = await repo.getSource(workspace, id)
        return (
          found && {
            ...found,
            fragments: found.fragments.map(({ content }) => ({ content, variable_overrides: {} }))
          }
        )
      }
    }),
    "ignores the oldest time of the list of versions": (repo) => ({
      listVersions: (workspace, id, _, page) => repo.listVersions(workspace, id, undefined, page)
    }),
    "ignores the oldest time of a version": (repo) => ({
      getVersion: (workspace, id, number) => repo.getVersion(workspace, id, number, undefined)
    }),
    "takes version numbers for positions": (repo) => ({
      getVersion: async (workspace, id, number, oldest) => {
        const listed = await repo.listVersions(workspace, id, undefined, { page: 1, per_page: 100 })
        const version = listed?.items.toReversed()[number - 1]
        return version && repo.getVersion(workspace, id, version.version_number, oldest)
      }
    }),
    "returns an empty list of versions for an unknown prompt": (repo) => ({
      listVersions: async (...args) => (await repo.listVersions(...args)) ?? { items: [], total: 0 }
    }),
    "returns times without milliseconds": (repo) => ({
      get: async (workspace, id) => {
        const found = await repo.get(workspace, id)
        return found && { ...found, created_at: found.created_at.replace(".000Z", "Z") }
      }
    }),
    "throws for a page past the end": (repo) => ({
      list: async (id, filter, page) => {
        if (page.page > 1_000) throw new RangeError("OFFSET must not be so large")
        return repo.list(id, filter, page)
      }
    })
  }

  it.each(Object.keys(faults))("rejects a store that %s, and shows the call", async (fault) => {
    const check = checkPromptRepo(async (workspaces) => {
      const { promptRepo } = await load(workspaces)
      return { ...promptRepo, ...faults[fault]!(promptRepo, workspaces) }
    })
    await expect(check).rejects.toThrow(
      /^(list|get|getSource|listVersions|getVersion)\(.*\)\nreturned .*\nexpected /s
    )
  })
})

describe("checkKeyStore", () => {
  it("accepts a correct store", async () => {
    await checkKeyStore(async (workspaces) => (await load(workspaces)).keyStore)
  })

  const faults: Record<string, (store: HostKeyStore) => HostKeyStore["find"]> = {
    "ignores revocations": (store) => async (hash) => {
      const found = await store.find(hash)
      return found && { ...found, revoked: false }
    },
    "ignores the expiry of keys": (store) => async (hash) => {
      const found = await store.find(hash)
      return found && { ...found, expires_at: null }
    },
    "ignores forced password resets": (store) => async (hash) => {
      const found = await store.find(hash)
      return found && { ...found, owner_must_reset: false }
    },
    "finds no key without a workspace": (store) => async (hash) => {
      const found = await store.find(hash)
      return found?.workspace === null ? undefined : found
    },
    "finds a key for any hash": (store) => async (hash) =>
      (await store.find(hash)) ?? { id: crypto.randomUUID(), workspace: null }
  }

  it.each(Object.keys(faults))("rejects a store that %s, and shows the call", async (fault) => {
    const check = checkKeyStore(async (workspaces) => {
      const { keyStore } = await load(workspaces)
      return { ...keyStore, find: faults[fault]!(keyStore) }
    })
    await expect(check).rejects.toThrow(/^find\("[0-9a-f]{64}"\)\nreturned .*\nexpected /s)
  })
})
