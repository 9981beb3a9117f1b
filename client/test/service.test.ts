import { readFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest"
import {
  type ClientOptions,
  type FetchInit,
  fillSlots,
  NotFoundError,
  PromptClient,
  UnauthorizedError
} from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import type { ArchivePrompt } from "../../src/application/formats/Archive.ts"
import { embedded, makeResources } from "../../test/support/database.ts"
import { startObservedService } from "../../test/support/services/startObservedService.ts"
import { type Service } from "../../test/support/service.ts"

const root = join(import.meta.dirname, "../..")
const archive = JSON.parse(readFileSync(join(root, "src/demo/workspace.json"), "utf8"))
const prompts: ReadonlyArray<ArchivePrompt> = archive.prompts
const agent = prompts.find(({ title }) => title === "Support agent")!

const resources = makeResources()
let env: Record<string, string>
let service: Service
let key: string

beforeAll(async () => {
  env = await resources.acquire(embedded.acquire)
  service = await startObservedService(env, "/readyz", ["--demo"])
  const findKey = () => /key_live_[0-9a-f]{64}/.exec(service.output())?.[0]
  key = await vi.waitUntil(findKey, { timeout: 10_000 })
})
afterAll(async () => {
  await service?.stop()
  await resources.release()
})

/** Creates a client of the service and records the requests that it sends. */
const connect = (options: Partial<ClientOptions> = {}) => {
  const requests: Array<FetchInit> = []
  const client = new PromptClient({
    apiKey: key,
    baseUrl: service.url,
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
  it("every result names the version, the ETag and the request that it comes from", async () => {
    const { client } = connect({ cache: {} })
    const stored = { version: agent.current_version, source: "fresh", requestId: "mine" }
    const headers = { "x-request-id": "mine" }
    const etag = expect.stringMatching(/^"[\w-]{43}"$/)
    expect(await client.prompts.get(agent.id, { headers })).toMatchObject({ ...stored, etag })
    const { response, ...result } = await client.prompts.getResolved(agent.id, { headers }).withResponse()
    expect(Object.keys(result)).toEqual(["data"])
    expect(response!.headers.get("prompt-version")).toBe(String(agent.current_version))
    const resolved = await client.prompts.getResolved(agent.id)
    expect(resolved).toMatchObject({ ...stored, etag, source: "cached" })
    // The ETag identifies the text, so another client and a later request get the same ETag.
    expect((await connect().client.prompts.getResolved(agent.id)).etag).toBe(resolved.etag)
    expect((await client.prompts.versions.get(agent.id, 2)).version).toBe(2)
    expect((await client.prompts.list()).version).toBeUndefined()
  })

  it("a FakeService with the same prompts gives the same results", async () => {
    const { client } = connect()
    const results = await Promise.all(listedPrompts.map(({ id }) => client.prompts.getResolved(id)))
    const fake = new FakeService({
      prompts: results.map(({ data, version, etag }) => ({
        ...data,
        content: data.resolved_content,
        version: version!,
        etag: etag!
      }))
    })
    for (const { data, version, etag, source } of results) {
      const faked = await fake.connect().prompts.getResolved(data.id)
      expect(faked.data).toEqual(data)
      expect(Object.keys(faked.data)).toEqual(Object.keys(data))
      expect(faked).toMatchObject({ version, etag, source })
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
    for (const one of [client, fake.connect()])
      await expect(one.prompts.getResolved("00000000-0000-4000-8000-000000000000")).rejects.toMatchObject(
        unknown
      )
    fake.failWith(401)
    await expect(fake.connect().prompts.list()).rejects.toBeInstanceOf(UnauthorizedError)
  })

  it.each(["/api/v1", "/elsewhere"])(
    "every call rejects with an InvalidResponseError if baseUrl ends with %s",
    async (path) => {
      const { client } = connect({ baseUrl: service.url + path })
      const message = "Unexpected response: 404 Route not found; check baseUrl"
      const rejection = { name: "InvalidResponseError", message }
      await expect(client.prompts.list()).rejects.toMatchObject(rejection)
      await expect(client.prompts.get(prompts[0]!.id)).rejects.toMatchObject(rejection)
    }
  )

  it("every method returns the service's envelope unchanged", async () => {
    const { client } = connect()
    const fetchJson = async (path: string) => {
      const headers = { authorization: `Bearer ${key}` }
      return (await fetch(`${service.url}/api/v1/prompts/${agent.id}${path}`, { headers })).json()
    }
    expect(await client.prompts.get(agent.id)).toEqual(await fetchJson(""))
    expect(await client.prompts.getResolved(agent.id)).toEqual(await fetchJson("/resolved"))
    expect(await client.prompts.versions.get(agent.id, 2)).toEqual(await fetchJson("/versions/2"))
    expect(await client.prompts.versions.list(agent.id, { per_page: 2 })).toEqual(
      await fetchJson("/versions?per_page=2")
    )
    const numbers: Array<number> = []
    for await (const version of client.prompts.versions.list(agent.id, { per_page: 1 })) {
      numbers.push(version.version_number)
    }
    expect(numbers).toEqual([3, 2, 1])
    const { data } = await client.prompts.getResolved(agent.id)
    expect(fillSlots(data.resolved_content, { shop: "Acme" })).toMatch(/^You are a support agent of Acme\. /)
  })

  it("the service's errors reject with their class, code, message and request id", async () => {
    const { client } = connect()
    const unknown = "00000000-0000-4000-8000-000000000000"
    await expect(client.prompts.get(unknown)).rejects.toMatchObject({
      name: "NotFoundError",
      status: 404,
      code: "NOT_FOUND",
      message: "Prompt not found",
      requestId: expect.stringMatching(/^[A-Za-z0-9._-]{1,128}$/),
      retryAfter: undefined
    })
    await expect(client.prompts.versions.get(agent.id, 99)).rejects.toBeInstanceOf(NotFoundError)
    await expect(client.prompts.list({ folder_id: "no uuid" })).rejects.toMatchObject({
      name: "BadRequestError",
      message: "folder_id must be a UUID"
    })
    const stranger = connect({ apiKey: `key_live_${"0".repeat(64)}` })
    await expect(stranger.client.prompts.list()).rejects.toBeInstanceOf(UnauthorizedError)
    await expect(client.prompts.get(unknown, { headers: { "x-request-id": "mine" } })).rejects.toMatchObject({
      requestId: "mine"
    })
  })

  it("an expired cache entry is revalidated with the service's ETag", async () => {
    const { client, requests } = connect({ cache: { ttl: 0, maxStale: 0 } })
    const first = await client.prompts.getResolved(agent.id)
    const second = await client.prompts.getResolved(agent.id)
    expect([first.source, second.source]).toEqual(["fresh", "fresh"])
    expect(second).toEqual(first)
    expect(requests.map(({ headers }) => headers["if-none-match"])).toEqual([
      undefined,
      expect.stringMatching(/^"[\w-]+"$/)
    ])
  })
})
