import { describe, expect, it } from "vitest"
import { FakeService } from "../src/testing.ts"

// `service.test.ts` compares the fake with a real service.

const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"

describe("FakeService", () => {
  it("FakeService lists prompts by type and page, and matches every tag", async () => {
    const prompts = ["system", "user", "system"].map((prompt_type, index) => ({
      id: `p${index}`,
      content: "Text",
      prompt_type
    }))
    const { list } = new FakeService({ prompts }).connect().prompts
    const ids: Array<string> = []
    for await (const prompt of list({ per_page: 1, type: "system", tag: "any" })) ids.push(prompt.id)
    expect(ids).toEqual(["p0", "p2"])
  })

  it("two FakeServices never have the same ETag, and only a request with names=true gets the names", async () => {
    const read = async (content: string, query: string) => {
      const { fetch } = new FakeService({ prompts: [{ id, content }] })
      const { signal } = new AbortController()
      const init = { method: "GET", headers: {}, redirect: "manual", signal } as const
      const response = await fetch(`http://fake.test/api/v1/resolved${query}`, init)
      return { etag: response.headers.get("etag"), meta: JSON.parse(await response.text()).meta }
    }
    const [first, second] = [await read("first", ""), await read("second", "?names=true")]
    expect(first.etag).not.toBe(second.etag)
    expect(first.meta).toEqual({ page: 1, per_page: 20, total: 1 })
    expect(second.meta.prompts).toEqual([{ name: id, version: 1 }])
  })

  it("FakeService finds a prompt by the name that it was given, and prefers the prompt that was added first", async () => {
    const service = new FakeService({
      prompts: [
        { id, title: "Greeting", content: "without a name" },
        { name: "twin", content: "first", id: id.replace("c", "a") },
        { name: "twin", content: "second", id: id.replace("c", "b") }
      ]
    })
    const client = service.connect({ cache: {} })
    await expect(client.prompts.get("greeting")).rejects.toMatchObject({ name: "NotFoundError" })
    expect((await client.prompts.getResolved("twin")).data.resolved_content).toBe("first")
    service.set({ name: "twin", content: "changed" })
    service.remove("none")
    expect((await client.prompts.list()).meta.total).toBe(3)
    service.remove("twin")
    expect(await client.prefetch(["twin", "none", id])).toEqual({ loaded: 2, missing: ["none"] })
    expect((await client.prompts.getResolved("twin")).data.resolved_content).toBe("second")
  })

  it("failWith makes calls reject with the error of the failure until failWith(undefined) ends the failure", async () => {
    const failures = {
      ConnectionError: "no connection",
      UnauthorizedError: 401,
      PastDueError: 402,
      ApiNotAllowedError: 403,
      RateLimitedError: 429,
      InternalServerError: 500,
      ServiceUnavailableError: 503
    } as const
    const service = new FakeService({ prompts: [{ id, content: "text" }] })
    for (const [name, failure] of Object.entries(failures)) {
      service.failWith(failure)
      await expect(service.connect().prompts.getResolved(id)).rejects.toMatchObject({ name })
    }
    service.failWith(undefined)
    expect((await service.connect().prompts.getResolved(id)).data.resolved_content).toBe("text")
  })
})
