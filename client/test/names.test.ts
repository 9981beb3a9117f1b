import { expect, it } from "vitest"
import type { PromptClient } from "../src/index.ts"
import { FakeService } from "../src/testing.ts"

const id = "cef02dd3-514f-5723-8852-d3305a2e66a8"

/** The methods that take a prompt, keyed by the part of the path after the name of the prompt. */
const methods: Readonly<
  Record<string, (prompts: PromptClient["prompts"], prompt: string) => Promise<unknown>>
> = {
  "": (prompts, prompt) => prompts.get(prompt),
  "/resolved": (prompts, prompt) => prompts.getResolved(prompt, { fallback: "x" }),
  "/versions": (prompts, prompt) => prompts.versions.list(prompt),
  "/versions/1": (prompts, prompt) => prompts.versions.get(prompt, 1)
}

it.each(Object.entries(methods))(
  "a call of /prompts/NAME%s sends one request with the given name or id, but no request for a name that no prompt can have",
  async (path, call) => {
    const service = new FakeService({ prompts: [{ id, name: "support-agent", content: "Text" }] })
    const { prompts } = service.connect()
    for (const prompt of ["support-agent", id, id.toUpperCase()]) await call(prompts, prompt)
    const message = path === "/versions/1" ? "Version not found" : "Prompt not found"
    await expect(call(prompts, "suport-agent")).rejects.toMatchObject({ name: "NotFoundError", message })
    for (const text of ["Support agent", "..", ".", "a/b", "a?b", "a%20b", "größe"])
      await expect(call(prompts, text)).rejects.toMatchObject({
        name: "NotFoundError",
        message: "Prompt not found; names look like support-agent"
      })
    for (const value of ["", undefined, 1])
      await expect(call(prompts, value as string)).rejects.toEqual(
        new TypeError("prompt must be a name or an id")
      )
    expect(service.requests).toEqual(
      ["support-agent", id, id.toUpperCase(), "suport-agent"].map((name) => `/api/v1/prompts/${name}${path}`)
    )
  }
)
