import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { expect, it } from "vitest"
import { resolve } from "../../src/domain/Resolution.ts"
import { fragment, newId, prompt, sample, fragmentBinding } from "../support/archives.ts"
import { getSource, makePromptRepo } from "../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import {
  expectError,
  expectSuccess,
  internalError,
  malformedAuthorization,
  promptNotFound,
  resolvedTooLarge
} from "./expectations.ts"
import { authorize, endpointTargets, startApi } from "./startApi.ts"

const { archive, keys } = sample()
const [greeting] = archive.prompts
/** Resolved content is limited to 1 MiB, so a prompt that contains this fragment exceeds the limit. */
const megabyte = fragment("x".repeat(1024 * 1024))
const large = prompt({
  title: "Large",
  is_archived: true,
  fragments: Array.from({ length: 9 }, (_, position) => fragmentBinding(megabyte, position))
})
const home = {
  ...archive,
  fragments: [...archive.fragments, megabyte],
  prompts: [...archive.prompts, large]
}

const targets = endpointTargets(greeting!.id)
/**
 * Returns the version that `Prompt-Version` of an endpoint must contain for `greeting`. Only two endpoints have the
 * header.
 */
const versionOf = (endpoint: string): number | undefined =>
  endpoint === "get" || endpoint === "getResolved" ? greeting!.current_version : undefined

const api = startApi([home])
const authorization = authorize(keys.active.plaintext)
const send = (target: string, lines = [authorization], method?: string) => api.send(target, lines, method)

const workspace = home.workspace.id
const model = makePromptRepo(new Map([[workspace, home]]))
const firstPage = { page: 1, per_page: 20 }

it("GET /prompts/{id} returns every prompt, including archived prompts, and accepts ids in uppercase", async () => {
  for (const stored of home.prompts)
    for (const id of [stored.id, stored.id.toUpperCase()])
      expectSuccess(
        await send(`/api/v1/prompts/${id}`),
        { data: Effect.runSync(model.get(workspace, stored.id)) },
        stored.current_version
      )
})

it("GET /prompts/{id}/resolved returns the content of the prompt followed by the contents of its fragments, with slots filled from the overrides", async () => {
  for (const stored of archive.prompts)
    expectSuccess(
      await send(`/api/v1/prompts/${stored.id}/resolved`),
      { data: Result.getOrThrow(resolve(getSource(home, stored))) },
      stored.current_version
    )
})

it("GET /prompts/{id}/versions returns the summaries of all versions, highest number first", async () => {
  const read = model.listVersions(workspace, greeting!.id, undefined, firstPage)
  const { items: data, total } = Effect.runSync(read)
  expectSuccess(await send(targets.listVersions), { data, meta: { ...firstPage, total } })
})

it("GET /prompts/{id}/versions/{version} returns each version of a prompt", async () => {
  for (const { version_number: number } of greeting!.versions) {
    const data = Effect.runSync(model.getVersion(workspace, greeting!.id, number, undefined))
    expectSuccess(await send(`${targets.listVersions}/${number}`), { data })
  }
})

it("GET /prompts/{id}/resolved returns 422 and logs the prompt's id if the content exceeds 1 MiB", async () => {
  expectError(await send(`/api/v1/prompts/${large.id}/resolved`), resolvedTooLarge)
  expect(api.service().output()).toMatch(
    new RegExp(`"level":"warn","msg":"Resolved content is too large","prompt_id":"${large.id}"`)
  )
  expect(api.service().output()).not.toContain('"level":"error"')
})

it.each(Object.entries(targets))(
  "the endpoint %s returns 500 without details after an unexpected failure",
  async (name, target) => {
    // No earlier request had this query string, so the response is not cached.
    const uncached = `${target}?${newId()}`
    await api.sql("alter table prompts rename column title to gone")
    await api.sql("alter table prompt_versions rename column change_summary to gone")
    try {
      expectError(await send(uncached), internalError)
    } finally {
      await api.sql("alter table prompts rename column gone to title")
      await api.sql("alter table prompt_versions rename column gone to change_summary")
    }
    expectSuccess(await send(uncached), undefined, versionOf(name))
  }
)

it("If-None-Match does not turn an error into a 304", async () => {
  const condition = "If-None-Match: *"
  expectError(await send(`/api/v1/prompts/${newId()}`, [authorization, condition]), promptNotFound)
  expectError(await send(targets.get, [condition]), malformedAuthorization)
})
