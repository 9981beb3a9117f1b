import { describe, expect, it } from "vitest"
import { type ClientOptions, type FetchInit, PromptClient } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { toSlug } from "../../src/domain/PromptName.ts"
import { startDemoApi } from "../../test/api/startApi.ts"

const api = startDemoApi()
const { prompts } = api.archive
const agent = prompts.find(({ title }) => title === "Support agent")!

/** Creates a client of the service and records the requests that it sends. */
const connect = (options: Partial<ClientOptions> = {}) => {
  const requests: Array<FetchInit> = []
  const client = new PromptClient({
    apiKey: api.key,
    baseUrl: api.service().url,
    fetch: (url, init) => {
      requests.push(init)
      return fetch(url, init)
    },
    ...options
  })
  return { client, requests }
}

const listedPrompts = prompts
  .filter(({ is_archived }) => !is_archived)
  .toSorted((a, b) => (a.updated_at + a.id < b.updated_at + b.id ? 1 : -1))

describe("the client of a real service", () => {
  it("the result of a prompt has the version, the ETag and the request id of its response", async () => {
    const { client } = connect({ cache: {} })
    const stored = { version: agent.current_version, source: "fresh", requestId: "mine" }
    const headers = { "x-request-id": "mine" }
    const etag = expect.stringMatching(/^"[\w-]{43}"$/)
    expect(await client.prompts.get(agent.id, { headers })).toMatchObject({ ...stored, etag })
    await client.prompts.getResolved(agent.id, { headers })
    const resolved = await client.prompts.getResolved(agent.id)
    expect(resolved).toMatchObject({ ...stored, etag, source: "cached" })
    // The ETag identifies the body, so another client and a later request get the same ETag.
    expect((await connect().client.prompts.getResolved(agent.id)).etag).toBe(resolved.etag)
  })

  it("a FakeService returns the resolved prompts of the service, and its other results have the same fields", async () => {
    const { client } = connect()
    const results = await Promise.all(listedPrompts.map(({ id }) => client.prompts.getResolved(id)))
    const fake = new FakeService({
      prompts: results.map(({ data, version }) => ({
        ...data,
        prompt_type: data.prompt_type!,
        content: data.resolved_content,
        version
      }))
    })
    for (const { data, version, source } of results) {
      const faked = await fake.connect().prompts.getResolved(data.id)
      expect(faked.data).toEqual(data)
      expect(Object.keys(faked.data)).toEqual(Object.keys(data))
      expect(faked).toMatchObject({ version, source })
    }
    const methods = [
      (client: PromptClient) => client.prompts.list({ per_page: 2 }),
      (client: PromptClient) => client.prompts.list({ type: "template" }),
      (client: PromptClient) => client.prompts.get(agent.id),
      (client: PromptClient) => client.prompts.versions.list(agent.id),
      (client: PromptClient) => client.prompts.versions.get(agent.id, agent.current_version)
    ]
    const listFields = (data: object) => Object.keys(Array.isArray(data) ? data[0] : data).toSorted()
    for (const read of methods) {
      const [real, faked] = await Promise.all([read(client), read(fake.connect())])
      expect(listFields(faked.data)).toEqual(listFields(real.data))
      expect(Object.keys(faked)).toEqual(Object.keys(real))
    }
    const unknown = { name: "NotFoundError", code: "NOT_FOUND", message: "Prompt not found" }
    for (const { prompts } of [client, fake.connect()])
      await expect(prompts.getResolved("no-such-prompt")).rejects.toMatchObject(unknown)
  })

  it("a call rejects with an InvalidResponseError if baseUrl ends with /api/v1", async () => {
    const { client } = connect({ baseUrl: `${api.service().url}/api/v1` })
    await expect(client.prompts.list()).rejects.toMatchObject({
      name: "InvalidResponseError",
      message: "Unexpected response: 404 Route not found; check baseUrl"
    })
  })

  it("every method returns the service's envelope unchanged", async () => {
    const { client } = connect()
    const fetchJson = async (path: string) => {
      const headers = { authorization: `Bearer ${api.key}` }
      return (await fetch(`${api.service().url}/api/v1/prompts/${agent.id}${path}`, { headers })).json()
    }
    expect(await client.prompts.get(agent.id)).toEqual(await fetchJson(""))
    expect(await client.prompts.getResolved(agent.id)).toEqual(await fetchJson("/resolved"))
    expect(await client.prompts.versions.get(agent.id, 2)).toEqual(await fetchJson("/versions/2"))
    expect(await client.prompts.versions.list(agent.id, { per_page: 2 })).toEqual(
      await fetchJson("/versions?per_page=2")
    )
    const numbers: Array<number> = []
    for await (const version of client.prompts.versions.list(agent.id, { per_page: 1 }))
      numbers.push(version.version_number)
    expect(numbers).toEqual([3, 2, 1])
  })

  it("prefetch and live return the texts and versions that getResolved returns, by the names of the prompts", async () => {
    const { client } = connect()
    const cached = connect({ cache: {} })
    const { loaded, missing } = await cached.client.prefetch({})
    expect([loaded, missing]).toEqual([listedPrompts.length, []])
    const live = connect()
    const selection = ["support-agent", "no-such-prompt", agent.id]
    expect(await cached.client.prefetch(selection)).toEqual({ loaded: 2, missing: ["no-such-prompt"] })
    await using _ = await live.client.live({})
    for (const { title, id } of listedPrompts) {
      const { data, version } = await client.prompts.getResolved(id)
      const name = toSlug(title)
      expect(await cached.client.prompts.getResolved(name)).toMatchObject({ data, version, source: "cached" })
      const fromMemory = await live.client.prompts.getResolved(name)
      expect([fromMemory.data, fromMemory.version]).toEqual([data, version])
      expect(fromMemory.source).toMatch(/^(live|cached)$/)
    }
    expect(cached.requests).toHaveLength(2)
  })
})
