/**
 * Runs the use cases over a custom PromptRepo, here one that stores a prompt in memory. In a checkout, run `npm run
 * build` first.
 *
 *     npx node examples/memory-repo.ts
 */
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Prompts } from "prompt-retrieval/application/Prompts"
import { PromptRepo } from "prompt-retrieval/application/ports/PromptRepo"
import { type Prompt, type PromptId, PromptNotFound } from "prompt-retrieval/domain/Prompt"
import type { Timestamp } from "prompt-retrieval/domain/Timestamp"
import { VersionNotFound } from "prompt-retrieval/domain/Version"
import type { WorkspaceId } from "prompt-retrieval/domain/WorkspaceId"

const workspaceId = "0b7a3f6e-5a52-4b0f-9c9e-2a1f4a6f1d11" as WorkspaceId
const greeting: Prompt = {
  id: "5b1d8f0c-1f57-4f6e-8f39-0a8f6f0c2b22" as PromptId,
  title: "Greeting",
  description: "",
  current_content: "Greet {{customer}}.",
  prompt_type: "system",
  target_model: "gpt-4o",
  intent: "support",
  current_version: 1,
  folder_id: null,
  is_favorite: false,
  is_archived: false,
  sort_order: 0,
  tags: [],
  created_at: "2026-01-01T00:00:00.000Z" as Timestamp,
  updated_at: "2026-01-01T00:00:00.000Z" as Timestamp
}

const find = (workspace: WorkspaceId, id: PromptId) =>
  workspace === workspaceId && id === greeting.id ? Effect.succeed(greeting) : Effect.fail(PromptNotFound)

const repo = Layer.succeed(PromptRepo, {
  list: () => Effect.succeed({ items: [greeting], total: 1 }),
  listPage: () => Effect.succeed([greeting]),
  get: find,
  getSource: (workspace, id) =>
    Effect.map(find(workspace, id), (prompt) => ({
      ...prompt,
      fragments: [{ content: "Be {{tone}}.", variable_overrides: { tone: "brief" } }]
    })),
  listVersions: (workspace, id) => Effect.as(find(workspace, id), { items: [], total: 0 }),
  getVersion: () => Effect.fail(VersionNotFound)
})

const program = Effect.gen(function* () {
  const prompts = yield* Prompts
  const { resolved_content } = yield* prompts.getResolved({ workspaceId, tier: "solo" }, greeting.id)
  return resolved_content
})

console.log(await Effect.runPromise(program.pipe(Effect.provide(Prompts.layer.pipe(Layer.provide(repo))))))
