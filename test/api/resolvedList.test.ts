import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import { expect, it } from "vitest"
import { getSource, makePromptRepo } from "../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import { findName } from "../../src/domain/PromptName.ts"
import { resolve } from "../../src/domain/Resolution.ts"
import { fragment, fragmentBinding, makeTenant, newId, prompt, sample } from "../support/archives.ts"
import {
  type ExpectedError,
  expectError,
  invalidParameter,
  positiveIntRule,
  resolvedTooLarge
} from "./expectations.ts"
import { authorize, startApi } from "./startApi.ts"

const { archive, keys } = sample()
const kibibytes = (count: number): string => "x".repeat(count * 1024)
const half = fragment(kibibytes(520))
const withHalves = (title: string, count: number) =>
  prompt({
    title,
    fragments: Array.from({ length: count }, (_, position) => fragmentBinding(half, position))
  })
/** Two prompts with resolved contents of about 520 KiB, and two prompts with resolved contents of over 1 MiB. */
const [one, other, tooLarge, manyBytes] = [
  withHalves("One", 1),
  withHalves("Other", 1),
  withHalves("Two halves", 2),
  withHalves("Nine halves", 9)
]
/** A prompt whose content has less than 1 MiB as text, but more than 1 MiB as JSON. */
const escaped = prompt({ title: "Escaped", current_content: "\n".repeat(600 * 1024) })
const large = makeTenant({ fragments: [half], prompts: [one, other, tooLarge, manyBytes, escaped] })

const api = startApi([archive, large.archive])
const send = (target: string, key: string = keys.active.plaintext) => api.send(target, [authorize(key)])
const read = async (target: string, key?: string) => {
  const { status, body } = await send(target, key)
  expect(status, body).toBe(200)
  return JSON.parse(body)
}
const tooLargeTogether: ExpectedError = [
  422,
  "RESOLVED_TOO_LARGE",
  "Resolved prompts are too large for one response: ask for fewer prompts, for example with per_page"
]
const toQuery = (prompts: ReadonlyArray<string>): string =>
  `/api/v1/resolved?${prompts.map((prompt) => `prompt=${prompt}`).join("&")}`

const model = makePromptRepo(new Map([[archive.workspace.id, archive]]))
const listed = Effect.runSync(model.listPage(archive.workspace.id, {}, { page: 1, per_page: 100 }))

it("GET /resolved returns the page that GET /prompts returns, with each prompt resolved", async () => {
  const queries = ["page=2&per_page=2", "type=system", "tag=production", "page=99", ""]
  for (const query of [...queries, `folder_id=${archive.folders[0]!.id}`]) {
    const list = await read(`/api/v1/prompts?${query}`)
    const found = list.data.map(({ id }: { readonly id: string }) =>
      archive.prompts.find((prompt) => prompt.id === id)
    ) as typeof archive.prompts
    const data = found.map((prompt) => Result.getOrThrow(resolve(getSource(archive, prompt))))
    expect(await read(`/api/v1/resolved?${query}`)).toEqual({ data, meta: list.meta })
    const prompts = found.map((prompt) => ({
      name: findName(archive.prompts, prompt),
      version: prompt.current_version
    }))
    const meta = { ...list.meta, prompts }
    expect(await read(`/api/v1/resolved?${query}&names=true`)).toEqual({ data, meta })
  }
})

it("GET /resolved?prompt= returns prompts by id and by name in the given order, and leaves out unknown prompts", async () => {
  const names = listed.map((prompt) => findName(archive.prompts, prompt))
  const archived = archive.prompts.find(({ is_archived }) => is_archived)!
  const [first, second] = [listed[0]!, listed[1]!]
  /** Each reference with the prompt that the reference denotes. */
  const references = [
    [names[1]!, second],
    [newId(), undefined],
    [archived.id, archived],
    ["no-such-prompt", undefined],
    [one.id, undefined],
    ["Not a name", undefined],
    [names[0]!, first],
    [second.id, second]
  ] as const
  const found = references.flatMap(([, prompt]) => prompt ?? [])
  const query = toQuery(references.map(([reference]) => encodeURIComponent(reference)))
  const { data, meta } = await read(`${query}&names=true`)
  expect(data.map(({ id }: { readonly id: string }) => id)).toEqual(found.map(({ id }) => id))
  expect(meta).toEqual({
    page: 1,
    per_page: 100,
    total: 4,
    prompts: references.flatMap(([name, prompt]) =>
      prompt === undefined ? [] : { name, version: prompt.current_version }
    )
  })
  expect((await read("/api/v1/resolved?prompt=")).data).toEqual([])
})

it("GET /resolved returns 400 if the parameter prompt is given more than 100 times, or together with paging or a filter", async () => {
  const atMost = invalidParameter("prompt", "must be given at most 100 times")
  expectError(await send(toQuery(Array(101).fill("a"))), atMost)
  const alone = invalidParameter("prompt", "must not be combined with other parameters")
  for (const parameter of ["page=1", "per_page=5", "tag=x", "type=user"])
    expectError(await send(`${toQuery(["a"])}&${parameter}`), alone)
  expectError(await send("/api/v1/resolved?names=1"), invalidParameter("names", "must be true"))
  expectError(await send("/api/v1/resolved?per_page=0"), invalidParameter("per_page", positiveIntRule))
})

it("GET /prompts/{id}/resolved returns 422 and logs the id of the prompt if the resolved content exceeds 1 MiB", async () => {
  for (const { id } of [tooLarge, manyBytes]) {
    expectError(await send(`/api/v1/prompts/${id}/resolved`, large.key.plaintext), resolvedTooLarge)
    const line = `"level":"warn","msg":"Resolved content is too large","prompt_id":"${id}"`
    expect(api.service().output()).toContain(line)
  }
  expect(api.service().output()).not.toContain('"level":"error"')
})

it("GET /resolved leaves out prompts that are too large, and returns 422 if the other prompts together exceed 1 MiB", async () => {
  const key = large.key.plaintext
  const { data } = await read(toQuery([tooLarge.id, one.id, manyBytes.id, escaped.id]), key)
  expect(data.map(({ title }: { readonly title: string }) => title)).toEqual(["One"])
  expectError(await send(toQuery([one.id, other.id]), key), tooLargeTogether)
  expectError(await send("/api/v1/resolved", key), tooLargeTogether)
  expectError(await send(toQuery(Array.from({ length: 100 }, () => one.id)), key), tooLargeTogether)
  const pages = await Promise.all(
    [1, 2, 3, 4, 5].map((page) => read(`/api/v1/resolved?per_page=1&page=${page}`, key))
  )
  expect(pages.flatMap(({ data }) => data)).toHaveLength(2)
})
