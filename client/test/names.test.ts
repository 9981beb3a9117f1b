import { describe, expect, it } from "vitest"
import type { PromptClient } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"
import { makeBundle } from "./makeBundle.ts"

const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"

/** Calls every method that takes a prompt. */
const calls = {
  get: ({ prompts }: PromptClient, prompt: string) => prompts.get(prompt),
  getResolved: ({ prompts }: PromptClient, prompt: string) => prompts.getResolved(prompt, { fallback: "x" }),
  "versions.list": ({ prompts }: PromptClient, prompt: string) => prompts.versions.list(prompt),
  "versions.get": ({ prompts }: PromptClient, prompt: string) => prompts.versions.get(prompt, 1)
}

const paths = {
  get: "",
  getResolved: "/resolved",
  "versions.list": "/versions",
  "versions.get": "/versions/1"
}

const makeService = () => new FakeService({ prompts: [{ id, name: "support-agent", content: "Text" }] })

describe.each(Object.keys(calls) as Array<keyof typeof calls>)("%s", (method) => {
  it.each(["support-agent", id, id.toUpperCase()])(
    "sends %s in the path, and no other request",
    async (prompt) => {
      const service = makeService()
      await calls[method](service.connect(), prompt)
      expect(service.requests).toEqual([`/api/v1/prompts/${prompt}${paths[method]}`])
    }
  )

  it("rejects with a NotFoundError if no prompt has the name, after one request", async () => {
    const service = makeService()
    await expect(calls[method](service.connect({ cache: {} }), "suport-agent")).rejects.toMatchObject({
      name: "NotFoundError",
      message: method === "versions.get" ? "Version not found" : "Prompt not found"
    })
    expect(service.requests).toHaveLength(1)
  })

  it.each(["Support agent", "..", ".", "a/b", "a?b", "a%20b", "größe"])(
    "rejects the text %j, which cannot be a name, with a NotFoundError and without a request",
    async (text) => {
      const service = makeService()
      await expect(calls[method](service.connect(), text)).rejects.toMatchObject({
        name: "NotFoundError",
        message: "Prompt not found; names look like support-agent"
      })
      expect(service.requests).toEqual([])
    }
  )

  it.each(["", undefined, 1])("rejects %j with a TypeError", async (value) => {
    await expect(calls[method](makeService().connect(), value as string)).rejects.toEqual(
      new TypeError("prompt must be a name or an id")
    )
  })
})

describe("names", () => {
  it("a reference is addressed by its name", async () => {
    const service = makeService()
    await service.connect().prompts.getResolved({ name: "support-agent", slots: [] })
    expect(service.requests).toEqual(["/api/v1/prompts/support-agent/resolved"])
  })

  it("a name and an id of the same prompt are two cached results, and a 404 evicts only its own", async () => {
    const service = makeService()
    const { prompts } = service.connect({ cache: { ttl: 0 } })
    await prompts.getResolved("support-agent")
    await prompts.getResolved(id)
    service.set({ id, name: "renamed", content: "Text" })
    expect((await prompts.getResolved("support-agent")).source).toBe("stale")
    await expect.poll(() => prompts.getResolved("support-agent").catch(({ status }) => status)).toBe(404)
    expect((await prompts.getResolved(id)).source).toBe("stale")
    expect((await prompts.getResolved("renamed")).source).toBe("fresh")
  })

  it("a bundled text is found by its name, by its id, and by a reference", async () => {
    const bundle = makeBundle([
      { id, name: "support-agent", content: "Bundled" },
      // Another prompt of the workspace has the same slug.
      { id: "0000000a-0000-4000-8000-000000000001", name: "twin-0000000a", content: "Twin" }
    ])
    const service = new FakeService()
    const bundled = service.connect({ bundle, mode: "bundle-first" })
    service.failWith("no connection")
    for (const client of [bundled, service.connect({ bundle })]) {
      const read = async (prompt: Parameters<typeof client.prompts.getResolved>[0]) => {
        const { data, source } = await client.prompts.getResolved(prompt, { fallback: "Fallback" })
        return `${source}: ${data.resolved_content}`
      }
      expect(await read("support-agent")).toBe("bundled: Bundled")
      expect(await read(id.toUpperCase())).toBe("bundled: Bundled")
      expect(await read("twin-0000000a")).toBe("bundled: Twin")
      expect(await read({ name: "support-agent", slots: [] })).toBe("bundled: Bundled")
      expect(await read("twin")).toBe("fallback: Fallback")
    }
  })
})
