/**
 * Serves the API from the program's own store of prompts and keys, here a map of workspaces, and tests the store. Needs
 * no database. In a checkout, run `npm run build` first.
 *
 * npx node --test examples/own-store.ts
 */
import assert from "node:assert/strict"
import { test } from "node:test"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import { makeWebHandler, ownStoresLayer } from "prompt-retrieval"
import { defaultRateLimits } from "prompt-retrieval/application/Admission"
import { KeyStore } from "prompt-retrieval/application/ports/KeyStore"
import { PromptRepo } from "prompt-retrieval/application/ports/PromptRepo"
import { InvalidKey } from "prompt-retrieval/domain/ApiKey"
import { paginate } from "prompt-retrieval/domain/Page"
import { PromptNotFound, pickRepeatedFields } from "prompt-retrieval/domain/Prompt"
import { findName, findPrompt, type PromptReference } from "prompt-retrieval/domain/PromptName"
import { type Version, VersionNotFound } from "prompt-retrieval/domain/Version"
import { type Archive, makeKeyStoreTests, makePromptRepoTests } from "prompt-retrieval/testing"

/** The store of the program. */
const workspaces = new Map<string, Archive>()

const find = (workspaceId: string, reference: PromptReference) =>
  Effect.suspend(() => {
    const workspace = workspaces.get(workspaceId)
    const prompt = workspace && findPrompt(workspace.prompts, reference)
    return workspace && prompt ? Effect.succeed({ workspace, prompt }) : Effect.fail(PromptNotFound)
  })

const ascending = <A extends string | number>(a: A, b: A): number => (a < b ? -1 : a > b ? 1 : 0)

const findTags = ({ tags }: Archive, prompt: Archive["prompts"][number]) =>
  tags
    .filter(({ id }) => prompt.tags.includes(id))
    .sort((a, b) => Buffer.compare(Buffer.from(a.name), Buffer.from(b.name)))

const list: PromptRepo["Service"]["list"] = (workspaceId, { folder_id, tag, type }, page) =>
  Effect.sync(() => {
    const workspace = workspaces.get(workspaceId)
    const prompts = workspace?.prompts.filter(
      (prompt) =>
        !prompt.is_archived &&
        (folder_id === undefined || prompt.folder_id === folder_id) &&
        (type === undefined || prompt.prompt_type === type) &&
        (tag === undefined || findTags(workspace, prompt).some(({ name }) => name === tag))
    )
    const newest = (prompts ?? []).sort(
      (a, b) => ascending(b.updated_at, a.updated_at) || ascending(b.id, a.id)
    )
    return paginate(
      newest.map(
        ({
          current_content,
          folder_id,
          is_favorite,
          is_archived,
          sort_order,
          tags,
          fragments,
          versions,
          ...rest
        }) => rest
      ),
      page
    )
  })

const getSource = (workspaceId: string, prompt: PromptReference) =>
  Effect.map(find(workspaceId, prompt), ({ workspace, prompt }) => {
    const fragments = prompt.fragments
      .toSorted((a, b) => ascending(a.position, b.position) || ascending(a.id, b.id))
      .flatMap(({ fragment_id, variable_overrides }) =>
        workspace.fragments
          .filter(({ id }) => id === fragment_id)
          .map(({ content }) => ({ content, variable_overrides }))
      )
    const { current_content, current_version } = prompt
    return { ...pickRepeatedFields(prompt), current_content, current_version, fragments }
  })

const promptRepo = Layer.succeed(PromptRepo, {
  list,
  listPage: (workspaceId, filter, page) => Effect.map(list(workspaceId, filter, page), ({ items }) => items),
  listNamed: (workspaceId, page) =>
    Effect.map(list(workspaceId, {}, page), ({ items }) => {
      const all = workspaces.get(workspaceId)?.prompts ?? []
      return items.map(({ id, title, description }) => ({
        id,
        name: findName(all, { id, title }),
        title,
        description
      }))
    }),
  get: (workspaceId, prompt) =>
    Effect.map(find(workspaceId, prompt), ({ workspace, prompt: { fragments, versions, ...prompt } }) => ({
      ...prompt,
      tags: findTags(workspace, prompt as Archive["prompts"][number])
    })),
  getSource,
  getSources: (workspaceId, prompts) =>
    Effect.map(
      Effect.forEach(prompts, (prompt) => Effect.option(getSource(workspaceId, prompt))),
      (sources) =>
        sources.flatMap((found, index) =>
          Option.toArray(found).map((source) => {
            const name = findName(workspaces.get(workspaceId)?.prompts ?? [], source)
            return { index, name, source: Result.succeed(source) }
          })
        )
    ),
  listVersions: (workspaceId, prompt, oldest, page) =>
    Effect.map(find(workspaceId, prompt), ({ prompt }) => {
      const visible = prompt.versions.filter(({ created_at }) => oldest === undefined || created_at >= oldest)
      const latest = visible.sort((a, b) => b.version_number - a.version_number)
      return paginate(
        latest.map(({ id, content, parent_version_id, metadata, ...summary }) => summary),
        page
      )
    }),
  getVersion: (workspaceId, prompt, number, oldest) =>
    Effect.flatMap(
      Effect.mapError(find(workspaceId, prompt), () => VersionNotFound),
      ({ prompt }) => {
        const version = prompt.versions.find(({ version_number }) => version_number === number)
        return version === undefined || (oldest !== undefined && version.created_at < oldest)
          ? Effect.fail(VersionNotFound)
          : Effect.succeed({
              ...version,
              prompt_id: prompt.id,
              metadata: version.metadata as Version["metadata"]
            })
      }
    )
})

const keyStore = Layer.succeed(KeyStore, {
  find: (hash) =>
    Effect.suspend(() => {
      for (const { workspace, users, api_keys } of workspaces.values()) {
        const key = api_keys.find(({ key_hash }) => key_hash === hash)
        if (key === undefined) continue
        const { id, tier, billing_status } = workspace
        return Effect.succeed({
          id: key.id,
          revoked: key.revoked_at !== null,
          expires_at: key.expires_at,
          owner_must_reset: users.some(
            ({ id, must_reset_password }) => id === key.created_by && must_reset_password
          ),
          workspace: key.workspace_id === null ? null : { id, tier, billing_status }
        })
      }
      return Effect.fail(InvalidKey)
    }),
  markUsed: () => {}
})

const load = (archive: Archive) => Effect.sync(() => void workspaces.set(archive.workspace.id, archive))

for (const { name, run } of makePromptRepoTests(load)) {
  test(`PromptRepo: ${name}`, () => Effect.runPromise(Effect.provide(run, promptRepo)))
}

for (const { name, run } of makeKeyStoreTests(load)) {
  test(`KeyStore: ${name}`, () => Effect.runPromise(Effect.provide(run, keyStore)))
}

test("the HTTP API on the store returns 401 for a request without a key", async () => {
  const services = ownStoresLayer({ redisUrl: undefined, rateLimits: defaultRateLimits }).pipe(
    Layer.provide([promptRepo, keyStore])
  )
  const serve = Effect.gen(function* () {
    const handler = yield* makeWebHandler
    return yield* Effect.promise(() => handler(new Request("http://localhost/api/v1/prompts")))
  })
  assert.equal((await Effect.runPromise(Effect.provide(serve, services))).status, 401)
})
