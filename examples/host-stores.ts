/**
 * Serves the HTTP API over prompts and keys that the program holds itself. Needs no database. In a checkout, run
 * `npm run build` first.
 *
 *     npx node examples/host-stores.ts
 */
import { createHash } from "node:crypto"
import { createPromptApi, type HostKeyStore, type HostPromptRepo, type StoreChanges } from "prompt-retrieval"
import { paginate } from "prompt-retrieval/domain/Page"

const workspaceId = "0b7a3f6e-5a52-4b0f-9c9e-2a1f4a6f1d11"
const key = `key_live_${"0123456789abcdef".repeat(4)}`
const keyHash = createHash("sha256").update(key).digest("hex")

let greeting = {
  id: "5b1d8f0c-1f57-4f6e-8f39-0a8f6f0c2b22",
  title: "Greeting",
  description: "",
  current_content: "Greet {{customer}}.",
  prompt_type: "system" as const,
  target_model: "gpt-4o",
  intent: "support",
  current_version: 1,
  folder_id: null,
  is_favorite: false,
  is_archived: false,
  sort_order: 0,
  tags: [],
  created_at: "2026-01-01T00:00:00.000Z",
  updated_at: "2026-01-01T00:00:00.000Z"
}

/** Each API that watches; a store that can lose its source of changes calls `setLive(false)` meanwhile. */
const watching = new Set<StoreChanges>()
const watch = (changes: StoreChanges) => {
  watching.add(changes)
  changes.setLive(true)
  return () => void watching.delete(changes)
}

const find = (workspace: string, id: string) =>
  workspace === workspaceId && id === greeting.id ? greeting : undefined

const promptRepo: HostPromptRepo = {
  watch,
  list: async (workspace, { folder_id, tag, type }, page) => {
    const isListed = workspace === workspaceId && folder_id === undefined && tag === undefined
    return paginate(isListed && (type ?? "system") === "system" ? [greeting] : [], page)
  },
  get: async (workspace, id) => find(workspace, id),
  getSource: async (workspace, id) => {
    const prompt = find(workspace, id)
    return (
      prompt && { ...prompt, fragments: [{ content: "Be {{tone}}.", variable_overrides: { tone: "brief" } }] }
    )
  },
  listVersions: async (workspace, id) => find(workspace, id) && { items: [], total: 0 },
  getVersion: async () => undefined
}

const keyStore: HostKeyStore = {
  watch,
  find: async (hash) =>
    hash === keyHash
      ? { id: "7f1c2f0e-6d58-4a57-8f0b-0f4a35b7d0aa", workspace: { id: workspaceId, tier: "team" } }
      : undefined
}

const api = await createPromptApi({ promptRepo, keyStore })

const printContent = async () => {
  const url = `http://localhost/api/v1/prompts/${greeting.id}/resolved`
  const response = await api.handler(new Request(url, { headers: { authorization: `Bearer ${key}` } }))
  const { data } = (await response.json()) as { data: { resolved_content: string } }
  console.log(response.status, JSON.stringify(data.resolved_content))
}

await printContent()
greeting = { ...greeting, current_content: "Welcome {{customer}}." }
for (const changes of watching) changes.changed(workspaceId)
await printContent()

await api.close()
