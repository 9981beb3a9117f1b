import { expect, expectTypeOf, it } from "vitest"
import type { PageMeta } from "../../src/domain/Page.ts"
import type { Prompt, PromptSummary, PromptType, ResolvedPrompt, Tag } from "../../src/domain/Prompt.ts"
import type { Version, VersionSummary } from "../../src/domain/Version.ts"
import * as Client from "../src/index.ts"

/** True if two types are identical, including `readonly` and `?`. Checked by tsc. */
type Equal<A, B> =
  (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2
    ? (<T>() => T extends B ? 1 : 2) extends <T>() => T extends A ? 1 : 2
      ? true
      : false
    : false

/** Compiles only if each type of the client is identical to the encoded type of the service's schema. */
const identical: {
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

/** Compiles only if `Equal` rejects types that differ. */
const different: {
  readonly missing: Equal<Client.Tag, Omit<Client.Tag, "color">>
  readonly widened: Equal<Client.PromptType, string>
  readonly nullable: Equal<Client.Tag, { readonly [K in keyof Client.Tag]: string | null }>
  readonly any: Equal<Client.Tag, unknown>
} = { missing: false, widened: false, nullable: false, any: false }

it("the client's resource types are identical to the service's schemas", () => {
  expect(Object.values(identical)).not.toContain(false)
  expect(Object.values(different)).not.toContain(true)
  expectTypeOf<Client.Prompt>().toEqualTypeOf<(typeof Prompt)["Encoded"]>()
  expectTypeOf<Client.Version>().toEqualTypeOf<(typeof Version)["Encoded"]>()
})

it("fetch, console and AbortSignal of the platform fit the client's option types", () => {
  expectTypeOf<typeof fetch>().toExtend<Client.Fetch>()
  expectTypeOf<Console>().toExtend<Client.Logger>()
  expectTypeOf<AbortSignal>().toEqualTypeOf<Client.Signal>()
})

it("TypeScript distinguishes the error classes by name", () => {
  const getName = (error: Client.NotFoundError | Client.UnauthorizedError) => error.name
  expectTypeOf(getName).returns.toEqualTypeOf<"NotFoundError" | "UnauthorizedError">()
})

it("the client's exported values keep their names", () => {
  expect(Object.keys(Client).toSorted()).toEqual([
    "AbortError",
    "ApiNotAllowedError",
    "BadRequestError",
    "ConnectionError",
    "DisputedError",
    "HeadersTooLargeError",
    "InternalServerError",
    "InvalidResponseError",
    "MethodNotAllowedError",
    "MissingVariablesError",
    "NotFoundError",
    "PastDueError",
    "PromptApiError",
    "PromptClient",
    "PromptClientError",
    "RateLimitedError",
    "RequestTimeoutError",
    "ServiceUnavailableError",
    "TimeoutError",
    "UnauthorizedError",
    "apiErrorOf",
    "fillSlots"
  ])
})
