import { expect, it } from "vitest"
import { toSlug } from "../../src/domain/PromptName.ts"
import { startDemoApi } from "../../test/api/startApi.ts"
import { type ClientOptions, PromptClient, type Single } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"

const api = startDemoApi()
const { prompts } = api.archive
const agent = prompts.find(({ title }) => title === "Support agent")!
const listedPrompts = prompts.filter(({ is_archived }) => !is_archived)

const connect = (options: ClientOptions = {}) =>
  new PromptClient({ apiKey: api.key, baseUrl: api.service().url, ...options })

it("a FakeService returns the resolved prompts and the errors of the service", async () => {
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
  for (const { prompts } of [client, fake]) {
    const notFound = (kind: string) => ({ name: "NotFoundError", message: `${kind} not found` })
    await expect(prompts.getResolved("no-such-prompt")).rejects.toMatchObject(notFound("Prompt"))
    await expect(prompts.versions.get(agent.id, 99)).rejects.toMatchObject(notFound("Version"))
    await expect(prompts.list({ page: 0 })).rejects.toMatchObject({ name: "BadRequestError" })
  }
})

it("every method returns the service's envelope with the version and the ETag of the response, and a FakeService returns the same fields", async () => {
  const fake = new FakeService({
    prompts: [{ ...agent, content: agent.current_content, version: agent.current_version }]
  })
  const { id, current_version } = agent
  const methods: ReadonlyArray<
    readonly [path: string, read: (client: PromptClient) => Promise<Single<object>>]
  > = [
    ["?per_page=2", ({ prompts }) => prompts.list({ per_page: 2 })],
    [`/${id}`, ({ prompts }) => prompts.get(id)],
    [`/${id}/resolved`, ({ prompts }) => prompts.getResolved(id) as Promise<Single<object>>],
    [`/${id}/versions?per_page=2`, ({ prompts }) => prompts.versions.list(id, { per_page: 2 })],
    [`/${id}/versions/${current_version}`, ({ prompts }) => prompts.versions.get(id, current_version)]
  ]
  const listFields = ({ data, ...envelope }: Single<object>) =>
    [envelope, Array.isArray(data) ? data[0] : data].map((fields) => Object.keys(fields).toSorted())
  const headers = { authorization: `Bearer ${api.key}` }
  for (const [path, read] of methods) {
    const response = await fetch(`${api.service().url}/api/v1/prompts${path}`, { headers })
    const result = await read(connect())
    expect(result).toEqual(await response.json())
    const version = path.includes("?") ? undefined : current_version
    expect(result).toMatchObject({ version, etag: response.headers.get("etag"), source: "fresh" })
    expect(listFields(await read(fake.connect()))).toEqual(listFields(result))
  }
})

it("after prefetch or live, getResolved by name returns the texts and versions that the service returns", async () => {
  const cached = connect({ cache: {} })
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
})
