/**
 * Tests code that calls the use cases, with the in-memory adapters. In a checkout, run `npm run build` first.
 *
 * npx node --test examples/memory-testing.ts
 */
import assert from "node:assert/strict"
import { test } from "node:test"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { Prompts } from "prompt-retrieval/application/Prompts"
import type { WorkspaceId } from "prompt-retrieval/domain/WorkspaceId"
import { importArchive, memoryLayer } from "prompt-retrieval/testing"

/** The code under test. */
const listTitles = (workspaceId: WorkspaceId) =>
  Effect.gen(function* () {
    const prompts = yield* Prompts
    const caller = { workspaceId, tier: "team" }
    const { items } = yield* prompts.list(caller, { type: "system" }, { page: 1, per_page: 100 })
    return items.map(({ title }) => title)
  })

const workspaceId = "0b7a3f6e-5a52-4b0f-9c9e-2a1f4a6f1d11" as WorkspaceId
const archive = {
  format: "prompt-retrieval/workspace@1",
  workspace: { id: workspaceId, name: "Test", tier: "team", billing_status: "active" },
  users: [],
  api_keys: [],
  folders: [],
  tags: [],
  fragments: [],
  prompts: [
    {
      id: "5b1d8f0c-1f57-4f6e-8f39-0a8f6f0c2b22",
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
      created_at: "2026-01-01T00:00:00.000Z",
      updated_at: "2026-01-01T00:00:00.000Z",
      tags: [],
      fragments: [],
      versions: []
    }
  ]
}

const services = Prompts.layer.pipe(Layer.provideMerge(memoryLayer))

/** Runs a program on an empty store. */
const run = <A, E>(program: Effect.Effect<A, E, Layer.Success<typeof services>>): Promise<A> =>
  Effect.runPromise(Effect.provide(program, Layer.fresh(services)))

test("listTitles returns no titles for a workspace without prompts", async () => {
  assert.deepEqual(await run(listTitles(workspaceId)), [])
})

test("listTitles returns the titles of the system prompts of a workspace", async () => {
  const program = Effect.andThen(importArchive(archive), listTitles(workspaceId))
  assert.deepEqual(await run(program), ["Greeting"])
})
