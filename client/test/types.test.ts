import { expect, expectTypeOf, it } from "vitest"
import type { PageMeta } from "../../src/domain/Page.ts"
import type { Prompt, PromptSummary, ResolvedPrompt } from "../../src/domain/Prompt.ts"
import type { Version, VersionSummary } from "../../src/domain/Version.ts"
import * as Client from "../src/index.ts"
import { FakeService } from "../src/testing.ts"

/** A result from the service, without undefined fields. Only the result of a fallback can lack a prompt_type. */
type FromService<A> = { readonly [Field in keyof A]: Exclude<A[Field], undefined> }

// tsc checks that the types of resources, including `readonly` and `?`, equal the types of the service's schemas.
expectTypeOf<Client.PromptSummary>().toEqualTypeOf<(typeof PromptSummary)["Encoded"]>()
expectTypeOf<Client.Prompt>().toEqualTypeOf<(typeof Prompt)["Encoded"]>()
expectTypeOf<FromService<Client.ResolvedPrompt>>().toEqualTypeOf<(typeof ResolvedPrompt)["Encoded"]>()
expectTypeOf<Client.VersionSummary>().toEqualTypeOf<(typeof VersionSummary)["Encoded"]>()
expectTypeOf<Client.Version>().toEqualTypeOf<(typeof Version)["Encoded"]>()
expectTypeOf<Client.PageMeta>().toEqualTypeOf<(typeof PageMeta)["Encoded"]>()

// The platform's fetch, console and AbortSignal, and the type of an imported bundle file, fit the client's types.
expectTypeOf<typeof fetch>().toExtend<Client.Fetch>()
expectTypeOf<Console>().toExtend<Client.Logger>()
expectTypeOf<AbortSignal>().toEqualTypeOf<Client.Signal>()
const texts = { id: "", name: "", title: "", prompt_type: "", target_model: "", content: "", sha256: "" }
const bundled = { ...texts, version: 1, fragment_count: 0, slots: [""] }
expectTypeOf({ format: "", formatVersion: 1, sha256: "", prompts: [bundled] }).toExtend<Client.PromptBundle>()
expectTypeOf<Client.NotFoundError["name"]>().toEqualTypeOf<"NotFoundError">()

const agent = { name: "support-agent", slots: ["shop", "tone"] } as const
const greeting = { name: "greeting", slots: [] } as const

// tsc checks that the marked lines do not compile, because an unused `@ts-expect-error` is an error.
it("fillSlots requires a variable for each slot of a typed reference, and accepts no other variable", async () => {
  const { prompts } = new FakeService({
    prompts: [
      { name: "support-agent", content: "{{shop}} {{tone}}" },
      { name: "greeting", content: "Hello" }
    ]
  }).connect()
  const { data } = await prompts.getResolved(agent)
  expectTypeOf(data).toExtend<Client.ResolvedPrompt>()
  expect(Client.toMessage(data, { shop: "Acme", tone: 1 }).content).toBe("Acme 1")
  // @ts-expect-error A variable is missing.
  expect(() => Client.fillSlots(data, { shop: "Acme" })).toThrow(Client.MissingVariablesError)
  // @ts-expect-error The prompt has no slot `more`.
  expect(Client.fillSlots(data, { shop: "Acme", tone: "x", more: "y" })).toBe("Acme x")
  // @ts-expect-error A variable is a string, a number or a boolean.
  expect(() => Client.fillSlots(data, { shop: "Acme", tone: null })).toThrow(Client.MissingVariablesError)

  const { data: hello } = await prompts.getResolved(greeting)
  expect(Client.fillSlots(hello, {})).toBe("Hello")
  // @ts-expect-error The prompt has no slots.
  Client.fillSlots(hello, { shop: "Acme" })

  // TypeScript also infers the slots of an inline reference. For a name of type string, the slots are unknown.
  const inline = await prompts.getResolved({ name: "greeting", slots: ["shop"] })
  // @ts-expect-error A variable is missing.
  Client.fillSlots(inline.data, {})
  const untyped = await prompts.getResolved("greeting" as string)
  expectTypeOf(untyped.source).toEqualTypeOf<Client.Source>()
  expectTypeOf(untyped.data).toEqualTypeOf<Client.ResolvedPrompt>()
  Client.fillSlots(untyped.data, { shop: "Acme", tone: "x", anything: true })

  const { response } = await prompts.getResolved("greeting").withResponse()
  expectTypeOf(response).toEqualTypeOf<Client.PromptResponse | undefined>()
  expectTypeOf(await prompts.get("greeting").asResponse()).toEqualTypeOf<Client.PromptResponse>()
})
