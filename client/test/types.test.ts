import { expect, expectTypeOf, it } from "vitest"
import type { PageMeta } from "../../src/domain/Page.ts"
import type { Prompt, PromptSummary, PromptType, ResolvedPrompt, Tag } from "../../src/domain/Prompt.ts"
import type { Version, VersionSummary } from "../../src/domain/Version.ts"
import { FakeService } from "../src/FakeService.ts"
import * as Client from "../src/index.ts"

/** A resolved prompt of the service has a type; that of a fallback may be undefined. */
type FromService<A> = { readonly [Field in keyof A]: Exclude<A[Field], undefined> }

// tsc checks these types, including `readonly` and `?`.
it("the client's resource types are identical to the service's schemas", () => {
  expectTypeOf<Client.PromptType>().toEqualTypeOf<(typeof PromptType)["Encoded"]>()
  expectTypeOf<Client.Tag>().toEqualTypeOf<(typeof Tag)["Encoded"]>()
  expectTypeOf<Client.PromptSummary>().toEqualTypeOf<(typeof PromptSummary)["Encoded"]>()
  expectTypeOf<Client.Prompt>().toEqualTypeOf<(typeof Prompt)["Encoded"]>()
  expectTypeOf<FromService<Client.ResolvedPrompt>>().toEqualTypeOf<(typeof ResolvedPrompt)["Encoded"]>()
  expectTypeOf<Client.VersionSummary>().toEqualTypeOf<(typeof VersionSummary)["Encoded"]>()
  expectTypeOf<Client.Version>().toEqualTypeOf<(typeof Version)["Encoded"]>()
  expectTypeOf<Client.PageMeta>().toEqualTypeOf<(typeof PageMeta)["Encoded"]>()
})

it("fetch, console and AbortSignal of the platform fit the client's option types", () => {
  expectTypeOf<typeof fetch>().toExtend<Client.Fetch>()
  expectTypeOf<Console>().toExtend<Client.Logger>()
  expectTypeOf<AbortSignal>().toEqualTypeOf<Client.Signal>()
})

it("TypeScript's type of an imported bundle file is the type of a bundle", () => {
  const texts = { id: "", name: "", title: "", prompt_type: "", target_model: "", content: "", sha256: "" }
  const prompts = [{ ...texts, version: 1, fragment_count: 0, slots: [""] }]
  const imported = { format: "", formatVersion: 1, sha256: "", prompts }
  expectTypeOf(imported).toExtend<Client.PromptBundle>()
})

it("TypeScript distinguishes the error classes by name", () => {
  const getName = (error: Client.NotFoundError | Client.UnauthorizedError) => error.name
  expectTypeOf(getName).returns.toEqualTypeOf<"NotFoundError" | "UnauthorizedError">()
})

// tsc checks that the marked lines below do not compile, because an unused `@ts-expect-error` is an error.

const generated = {
  supportAgent: { name: "support-agent", slots: ["shop", "tone"] },
  greeting: { name: "greeting", slots: [] }
} as const satisfies Readonly<Record<string, Client.PromptReference>>

/** A test runs this function, so that its types are compared with real values. */
const useTypedReferences = async (client: Client.PromptClient, id: string) => {
  const { data, source } = await client.prompts.getResolved(generated.supportAgent)
  expectTypeOf(source).toEqualTypeOf<Client.Source>()
  expectTypeOf(data).toExtend<Client.ResolvedPrompt>()
  const texts = [Client.fillSlots(data, { shop: "Acme", tone: 1 })]
  // @ts-expect-error A variable is missing.
  expect(() => Client.fillSlots(data, { shop: "Acme" })).toThrow(Client.MissingVariablesError)
  // @ts-expect-error There is no such slot.
  texts.push(Client.fillSlots(data, { shop: "Acme", tone: "x", more: "y" }))
  // @ts-expect-error A variable is a string, a number or a boolean.
  expect(() => Client.fillSlots(data, { shop: "Acme", tone: null })).toThrow(Client.MissingVariablesError)

  expectTypeOf(Client.toMessage(data, { shop: "Acme", tone: 1 })).toEqualTypeOf<Client.Message>()

  const { data: greeting } = await client.prompts.getResolved(generated.greeting)
  Client.fillSlots(greeting, {})
  // @ts-expect-error The prompt has no slots.
  Client.fillSlots(greeting, { shop: "Acme" })

  // TypeScript also infers the slots of a reference that is written in place. For a text, it infers no slots.
  const inline = await client.prompts.getResolved({ name: "greeting", slots: ["shop"] })
  // @ts-expect-error A variable is missing.
  Client.fillSlots(inline.data, {})
  const untyped = await client.prompts.getResolved(id)
  expectTypeOf(untyped.data).toEqualTypeOf<Client.ResolvedPrompt>()
  Client.fillSlots(untyped.data, { shop: "Acme", tone: "x", anything: true })
  const either = await client.prompts.getResolved(Math.random() < 2 ? id : generated.supportAgent)
  expectTypeOf(either.data).toExtend<Client.ResolvedPrompt>()

  const { response } = await client.prompts.getResolved(id).withResponse()
  expectTypeOf(response).toEqualTypeOf<Client.PromptResponse | undefined>()
  expectTypeOf(await client.prompts.get(id).asResponse()).toEqualTypeOf<Client.PromptResponse>()
  // @ts-expect-error Only getResolved has a fallback.
  await client.prompts.get(id, { fallback: "text" })
  return texts
}

it("fillSlots requires a variable for each slot of a typed reference, and accepts no other variable", async () => {
  const service = new FakeService({
    prompts: [
      { ...generated.supportAgent, content: "{{shop}} {{tone}}" },
      { name: "greeting", content: "Hello" }
    ]
  })
  const client = service.connect()
  expect(await useTypedReferences(client, generated.supportAgent.name).catch((error) => error)).toEqual([
    "Acme 1",
    "Acme x"
  ])
})
