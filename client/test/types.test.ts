import { expect, expectTypeOf, it } from "vitest"
import type * as Client from "../src/index.ts"
import type { PageMeta } from "../../src/domain/Page.ts"
import type { Prompt, PromptSummary, PromptType, ResolvedPrompt, Tag } from "../../src/domain/Prompt.ts"
import type { Version, VersionSummary } from "../../src/domain/Version.ts"

/** Whether two types are the same, `readonly` and `?` included; tsc is what checks it. */
type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2
    ? (<T>() => T extends B ? 1 : 2) extends <T>() => T extends A ? 1 : 2
      ? true
      : false
    : false

/** Proves by compiling that the client's types are what the schemas put on the wire. */
const same: {
  readonly PromptType: Equal<Client.PromptType, (typeof PromptType)["Encoded"]>
  readonly Tag: Equal<Client.Tag, (typeof Tag)["Encoded"]>
  readonly PromptSummary: Equal<Client.PromptSummary, (typeof PromptSummary)["Encoded"]>
  readonly Prompt: Equal<Client.Prompt, (typeof Prompt)["Encoded"]>
  readonly ResolvedPrompt: Equal<Client.ResolvedPrompt, (typeof ResolvedPrompt)["Encoded"]>
  readonly VersionSummary: Equal<Client.VersionSummary, (typeof VersionSummary)["Encoded"]>
  readonly Version: Equal<Client.Version, (typeof Version)["Encoded"]>
  readonly PageMeta: Equal<Client.PageMeta, (typeof PageMeta)["Encoded"]>
} = {
  PromptType: true,
  Tag: true,
  PromptSummary: true,
  Prompt: true,
  ResolvedPrompt: true,
  VersionSummary: true,
  Version: true,
  PageMeta: true
}

/** That `Equal` can tell types apart. */
const apart: {
  readonly missing: Equal<Client.Tag, Omit<Client.Tag, "color">>
  readonly widened: Equal<Client.PromptType, string>
  readonly nullable: Equal<Client.Tag, { readonly [K in keyof Client.Tag]: string | null }>
  readonly any: Equal<Client.Tag, unknown>
} = { missing: false, widened: false, nullable: false, any: false }

it("has the types of the wire", () => {
  expect(Object.values(same)).not.toContain(false)
  expect(Object.values(apart)).not.toContain(true)
  expectTypeOf<Client.Prompt>().toEqualTypeOf<(typeof Prompt)["Encoded"]>()
  expectTypeOf<Client.Version>().toEqualTypeOf<(typeof Version)["Encoded"]>()
})

it("takes the platform's own fetch, console and AbortSignal", () => {
  expectTypeOf<typeof fetch>().toExtend<Client.Fetch>()
  expectTypeOf<Console>().toExtend<Client.Logger>()
  expectTypeOf<AbortSignal>().toEqualTypeOf<Client.Signal>()
})

it("tells the error classes apart", () => {
  const classOf = (error: Client.NotFoundError | Client.UnauthorizedError) => error.name
  expectTypeOf(classOf).returns.toEqualTypeOf<"NotFoundError" | "UnauthorizedError">()
})
