import * as Result from "effect/Result"
import { describe, expect, it } from "vitest"
import { resolve } from "../../src/domain/Resolution.ts"
import { fragment, newId, prompt, sample, fragmentBinding } from "../support/archives.ts"
import * as model from "../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import { getHeader } from "../support/clients/rawHttp.ts"
import {
  expectError,
  expectNotModified,
  expectSuccess,
  internalError,
  malformedAuthorization,
  resolvedTooLarge
} from "./expectations.ts"
import { authorize, endpointTargets, startApi } from "./startApi.ts"

const { archive, keys } = sample()
const [greeting] = archive.prompts
/** Resolved content may have at most 1 MiB, so a prompt that contains this fragment exceeds the limit. */
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
 * Returns the version in the `Prompt-Version` header of an endpoint for `greeting`. Only two endpoints have the header.
 */
const versionOf = (endpoint: string): number | undefined =>
  endpoint === "get" || endpoint === "getResolved" ? greeting!.current_version : undefined

describe("the endpoints of the API", () => {
  const api = startApi([home])
  const send = (target: string, lines = [authorize(keys.active.plaintext)], method?: string) =>
    api.send(target, lines, method)

  it("GET /prompts returns the summaries of all prompts that are not archived, most recently updated first", async () => {
    const data = model.listPrompts(home, {})
    const meta = { page: 1, per_page: 20, total: data.length }
    expectSuccess(await send(targets.list), { data, meta })
  })

  it("GET /prompts/{id} returns every prompt, including archived prompts, and accepts ids in uppercase", async () => {
    for (const stored of home.prompts)
      for (const id of [stored.id, stored.id.toUpperCase()])
        expectSuccess(
          await send(`/api/v1/prompts/${id}`),
          { data: model.getPrompt(home, stored) },
          stored.current_version
        )
  })

  it("GET /prompts/{id}/resolved returns the content of the prompt followed by the contents of its fragments, with slots filled from the overrides", async () => {
    for (const stored of archive.prompts)
      expectSuccess(
        await send(`/api/v1/prompts/${stored.id}/resolved`),
        { data: Result.getOrThrow(resolve(model.getSource(home, stored))) },
        stored.current_version
      )
  })

  it("GET /prompts/{id}/versions returns the summaries of all versions, highest number first", async () => {
    const data = model.listVersions(greeting!).map(model.toVersionSummary)
    const meta = { page: 1, per_page: 20, total: data.length }
    expectSuccess(await send(targets.listVersions), { data, meta })
  })

  it("GET /prompts/{id}/versions/{version} returns each version of a prompt", async () => {
    for (const version of model.listVersions(greeting!))
      expectSuccess(await send(`${targets.listVersions}/${version.version_number}`), { data: version })
  })

  it("GET /prompts/{id}/resolved returns 422 and logs the prompt's id if the content exceeds 1 MiB", async () => {
    expectError(await send(`/api/v1/prompts/${large.id}/resolved`), resolvedTooLarge)
    expect(api.service().output()).toMatch(
      new RegExp(`"level":"warn","msg":"Resolved content is too large","prompt_id":"${large.id}"`)
    )
    expect(api.service().output()).not.toContain('"level":"error"')
  })

  describe.each(Object.entries(targets))("the endpoint %s", (name, target) => {
    it(`the endpoint ${name} returns 401 without a key`, async () => {
      expectError(await send(target, []), malformedAuthorization)
    })

    it(`the endpoint ${name} returns 304 if If-None-Match contains the ETag of its response`, async () => {
      const etag = getHeader(await send(target), "etag")!
      const lines = [authorize(keys.active.plaintext), `If-None-Match: ${etag}`]
      expectNotModified(await send(target, lines), etag, versionOf(name))
    })

    it(`the endpoint ${name} returns 500 without details after an unexpected failure`, async () => {
      // The unused query string makes sure that the response is not cached.
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
    })
  })
})
