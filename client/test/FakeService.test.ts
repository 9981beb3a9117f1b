import { expect, it } from "vitest"
import { ConnectionError } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"

// `service.test.ts` compares the fake with a real service.

const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"

it("FakeService lists prompts by type and page, and ignores the filter by tag", async () => {
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

it("the prompts of two FakeServices never have the same ETag", async () => {
  const readEtag = async (content: string) => {
    const { prompts } = new FakeService({ prompts: [{ id, content }] }).connect()
    return (await prompts.getResolved(id)).etag
  }
  expect(await readEtag("first")).not.toBe(await readEtag("second"))
})

it("FakeService finds a prompt only by its given name, and if two prompts share a name, returns the prompt that was added first", async () => {
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

it("FakeService.failWith makes calls reject with an error of the given status until failWith(undefined) ends the failure", async () => {
  const service = new FakeService({ prompts: [{ id, content: "text" }] })
  const { prompts } = service.connect()
  for (const status of [401, 402, 403, 429, 500, 503] as const) {
    service.failWith(status)
    await expect(service.connect().prompts.getResolved(id)).rejects.toMatchObject({ status })
  }
  service.failWith("no connection")
  await expect(prompts.getResolved(id)).rejects.toBeInstanceOf(ConnectionError)
  service.failWith(undefined)
  expect((await prompts.getResolved(id)).data.resolved_content).toBe("text")
})
