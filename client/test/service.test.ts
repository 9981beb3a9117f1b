import { describe, expect, it } from "vitest"
import { type ClientOptions, PromptClient } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { toSlug } from "../../src/domain/PromptName.ts"
import { startDemoApi } from "../../test/api/startApi.ts"

const api = startDemoApi()
const { prompts } = api.archive
const agent = prompts.find(({ title }) => title === "Support agent")!
const listedPrompts = prompts.filter(({ is_archived }) => !is_archived)

const connect = (options: ClientOptions = {}) =>
  new PromptClient({ apiKey: api.key, baseUrl: api.service().url, ...options })

describe("the client of a real service", () => {
  it("a FakeService returns the resolved prompts of the service, and its other results have the same fields", async () => {
    const client = connect()
    const results = await Promise.all(listedPrompts.map(({ id }) => client.prompts.getResolved(id)))
    const service = new FakeService({
      prompts: results.map(({ data, version }) => ({
        ...data,
        prompt_type: data.prompt_type!,
        content: data.resolved_content,
        version
      }))
    })
    const fake = service.connect()
    for (const { data, version, source } of results) {
      const faked = await fake.prompts.getResolved(data.id)
      expect(JSON.stringify(faked.data)).toBe(JSON.stringify(data))
      expect(faked).toMatchObject({ version, source })
    }
    const methods = [
      ({ prompts }: PromptClient) => prompts.list({ per_page: 2 }),
      ({ prompts }: PromptClient) => prompts.list({ type: "template" }),
      ({ prompts }: PromptClient) => prompts.get(agent.id),
      ({ prompts }: PromptClient) => prompts.versions.list(agent.id),
      ({ prompts }: PromptClient) => prompts.versions.get(agent.id, agent.current_version)
    ]
    const listFields = (data: object) => Object.keys(Array.isArray(data) ? data[0] : data).toSorted()
    for (const read of methods) {
      const [real, faked] = await Promise.all([read(client), read(fake)])
      expect(listFields(faked.data)).toEqual(listFields(real.data))
      expect(Object.keys(faked)).toEqual(Object.keys(real))
    }
    for (const { prompts } of [client, fake]) {
      const notFound = (kind: string) => ({ name: "NotFoundError", message: `${kind} not found` })
      await expect(prompts.getResolved("no-such-prompt")).rejects.toMatchObject(notFound("Prompt"))
      await expect(prompts.versions.get(agent.id, 99)).rejects.toMatchObject(notFound("Version"))
      await expect(prompts.list({ page: 0 })).rejects.toMatchObject({ name: "BadRequestError" })
    }
  })

  it("every method returns the service's envelope unchanged, with the version and the ETag of the response", async () => {
    const { prompts } = connect()
    const calls: ReadonlyArray<readonly [call: Promise<object>, path: string]> = [
      [prompts.get(agent.id), ""],
      [prompts.getResolved(agent.id), "/resolved"],
      [prompts.versions.get(agent.id, agent.current_version), `/versions/${agent.current_version}`],
      [prompts.versions.list(agent.id, { per_page: 2 }), "/versions?per_page=2"]
    ]
    const headers = { authorization: `Bearer ${api.key}` }
    for (const [call, path] of calls) {
      const response = await fetch(`${api.service().url}/api/v1/prompts/${agent.id}${path}`, { headers })
      const result = await call
      expect(result).toEqual(await response.json())
      const version = path.includes("?") ? undefined : agent.current_version
      expect(result).toMatchObject({ version, etag: response.headers.get("etag"), source: "fresh" })
    }
  })

  it("prefetch and live return the texts and versions that getResolved returns, by the names of the prompts", async () => {
    let requests = 0
    const countingFetch: typeof fetch = (...call) => {
      requests++
      return fetch(...call)
    }
    const cached = connect({ cache: {}, fetch: countingFetch })
    expect(await cached.prefetch({})).toEqual({ loaded: listedPrompts.length, missing: [] })
    const selection = ["support-agent", "no-such-prompt", agent.id]
    expect(await cached.prefetch(selection)).toEqual({ loaded: 2, missing: ["no-such-prompt"] })
    const live = connect()
    await using _ = await live.live({})
    for (const { title, id } of listedPrompts) {
      const { data, version } = await connect().prompts.getResolved(id)
      const name = toSlug(title)
      expect(await cached.prompts.getResolved(name)).toMatchObject({ data, version, source: "cached" })
      const fromMemory = await live.prompts.getResolved(name)
      expect(fromMemory).toMatchObject({ data, version, source: expect.stringMatching(/^(live|cached)$/) })
    }
    expect(requests).toBe(2)
  })
})
