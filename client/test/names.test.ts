import { describe, expect, it } from "vitest"
import type { PromptClient } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"

const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"

/** Calls every method that takes a prompt. */
const methods = [
  { path: "", call: ({ prompts }: PromptClient, prompt: string) => prompts.get(prompt) },
  {
    path: "/resolved",
    call: ({ prompts }: PromptClient, prompt: string) => prompts.getResolved(prompt, { fallback: "x" })
  },
  { path: "/versions", call: ({ prompts }: PromptClient, prompt: string) => prompts.versions.list(prompt) },
  {
    path: "/versions/1",
    call: ({ prompts }: PromptClient, prompt: string) => prompts.versions.get(prompt, 1)
  }
]

const makeService = () => new FakeService({ prompts: [{ id, name: "support-agent", content: "Text" }] })

describe.each(methods)("/prompts/NAME$path", ({ path, call }) => {
  it("a call sends one request, with the given name or id in the path, and rejects with a NotFoundError if no prompt has the name", async () => {
    const service = makeService()
    const prompts = ["support-agent", id, id.toUpperCase()]
    for (const prompt of prompts) await call(service.connect(), prompt)
    await expect(call(service.connect({ cache: {} }), "suport-agent")).rejects.toMatchObject({
      name: "NotFoundError",
      message: path === "/versions/1" ? "Version not found" : "Prompt not found"
    })
    expect(service.requests).toEqual(
      [...prompts, "suport-agent"].map((prompt) => `/api/v1/prompts/${prompt}${path}`)
    )
  })

  it("without a request, a call rejects an impossible name with a NotFoundError and a value of another type with a TypeError", async () => {
    const service = makeService()
    for (const text of ["Support agent", "..", ".", "a/b", "a?b", "a%20b", "größe"])
      await expect(call(service.connect(), text)).rejects.toMatchObject({
        name: "NotFoundError",
        message: "Prompt not found; names look like support-agent"
      })
    for (const value of ["", undefined, 1])
      await expect(call(service.connect(), value as string)).rejects.toEqual(
        new TypeError("prompt must be a name or an id")
      )
    expect(service.requests).toEqual([])
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
})
