import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { it } from "vitest"
import { getSource, makePromptRepo } from "../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import { resolve } from "../../src/domain/Resolution.ts"
import { newId, sample } from "../support/archives.ts"
import { expectError, expectSuccess, internalError } from "./expectations.ts"
import { authorize, endpointTargets, startApi } from "./startApi.ts"

const { archive, keys } = sample()
const [greeting] = archive.prompts
const targets = endpointTargets(greeting!.id)

const api = startApi([archive])
const send = (target: string) => api.send(target, [authorize(keys.active.plaintext)])

const workspace = archive.workspace.id
const model = makePromptRepo(new Map([[workspace, archive]]))

it("GET /prompts/{id} and GET /prompts/{id}/resolved return every prompt, including archived prompts", async () => {
  for (const stored of archive.prompts)
    for (const id of [stored.id, stored.id.toUpperCase()]) {
      const prompt = { data: Effect.runSync(model.get(workspace, stored.id)) }
      const resolved = { data: Result.getOrThrow(resolve(getSource(archive, stored))) }
      expectSuccess(await send(`/api/v1/prompts/${id}`), prompt, stored.current_version)
      expectSuccess(await send(`/api/v1/prompts/${id}/resolved`), resolved, stored.current_version)
    }
})

it("GET /prompts/{id}/versions lists the summaries of all versions, highest number first, and GET /prompts/{id}/versions/{version} returns one version", async () => {
  const page = { page: 1, per_page: 20 }
  const read = model.listVersions(workspace, greeting!.id, undefined, page)
  const { items: data, total } = Effect.runSync(read)
  expectSuccess(await send(targets.listVersions), { data, meta: { ...page, total } })
  for (const { version_number: number } of greeting!.versions) {
    const data = Effect.runSync(model.getVersion(workspace, greeting!.id, number, undefined))
    expectSuccess(await send(`${targets.listVersions}/${number}`), { data })
  }
})

/** Renames a column in every table, except in the tables that the lookup of a key reads. */
const renameContentColumns = (from: string, to: string): string =>
  `do $$ declare name text; begin
    for name in select table_name from information_schema.columns
      where table_schema = 'public' and column_name = '${from}' and table_name not in ('workspaces', 'users', 'api_keys')
    loop execute format('alter table %I rename column ${from} to ${to}', name); end loop;
  end $$`

it.each(Object.entries(targets))(
  "the endpoint %s returns 500 without details after an unexpected failure",
  async (name, target) => {
    // No earlier request had this query string, so the response is not cached.
    const uncached = `${target}?${newId()}`
    await api.sql(renameContentColumns("id", "gone"))
    try {
      expectError(await send(uncached), internalError)
    } finally {
      await api.sql(renameContentColumns("gone", "id"))
    }
    const version = ["get", "getResolved"].includes(name) ? greeting!.current_version : undefined
    expectSuccess(await send(uncached), undefined, version)
  }
)
