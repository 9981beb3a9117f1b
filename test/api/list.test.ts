import * as Effect from "effect/Effect"
import { expect, it } from "vitest"
import { makePromptRepo } from "../../src/adapters/outbound/memory/MemoryPromptRepo.ts"
import type { PromptFilter } from "../../src/application/ports/PromptRepo.ts"
import type { FolderId } from "../../src/domain/Prompt.ts"
import { newId, sample } from "../support/archives.ts"
import { expectError, expectSuccess, invalidParameter, positiveIntRule } from "./expectations.ts"
import { authorize, startApi } from "./startApi.ts"

const home = sample()
const other = sample()
const api = startApi([home.archive, other.archive])
const send = (target: string) => api.send(target, [authorize(home.keys.active.plaintext)])

const prompts = "/api/v1/prompts"
const firstPage = { page: 1, per_page: 20 }
const versions = `${prompts}/${home.archive.prompts[0]!.id}/versions`

const invalidNumbers = ["", "0", "01", "%201", encodeURIComponent("٣"), "9007199254740992", "%", "%00"]
it.each(["page", "per_page"].flatMap((name) => invalidNumbers.map((value) => [name, value] as const)))(
  "the list of prompts and the list of versions return 400 for %s=%s",
  async (name, value) => {
    for (const path of [prompts, versions])
      expectError(await send(`${path}?${name}=${value}`), invalidParameter(name, positiveIntRule))
  }
)

it.each([
  ["", 1, 20],
  ["?", 1, 20],
  ["?page=2", 2, 20],
  ["??page=2", 1, 20],
  ["?p%61ge=2", 2, 20],
  ["?per_page=100", 1, 100],
  ["?per_page=101", 1, 100],
  ["?per_page=9007199254740991", 1, 100],
  ["?page=9007199254740991&per_page=100", 9007199254740991, 100],
  ["?Page=0&PER_PAGE=0&unknown=1&unknown=2&&=&=x", 1, 20]
])(
  "for the query %j, the list of prompts and the list of versions return page %i with at most %i items",
  async (query, page, per_page) => {
    for (const [path, total] of [
      [prompts, 7],
      [versions, 3]
    ] as const) {
      const response = await send(`${path}${query}`)
      expectSuccess(response)
      const { data, meta } = JSON.parse(response.body)
      expect(meta).toEqual({ page, per_page, total })
      expect(data.length).toBe(page === 1 ? Math.min(total, per_page) : 0)
    }
  }
)

const atMostOnce = (name: string) => invalidParameter(name, "must be given at most once")
const invalidFolder = invalidParameter("folder_id", "must be a UUID")
const invalidType = invalidParameter(
  "type",
  "must be one of system, user, assistant, template, few-shot, chain-of-thought"
)
it.each([
  ["page=1&page=1", atMostOnce("page")],
  ["per_page=1&x=2&per_page=1", atMostOnce("per_page")],
  ["tag=a&tag=a", atMostOnce("tag")],
  ["tag=&t%61g=", atMostOnce("tag")],
  ["type=user&type=user", atMostOnce("type")],
  [`folder_id=${newId()}&folder_id=${newId()}`, atMostOnce("folder_id")],
  ["folder_id=", invalidFolder],
  ["folder_id=x", invalidFolder],
  [`folder_id=%7B${newId()}%7D`, invalidFolder],
  [`folder_id=${newId().replaceAll("-", "")}`, invalidFolder],
  [`folder_id=${newId()}%00`, invalidFolder],
  ["type=", invalidType],
  ["type=System", invalidType],
  ["type=system%00", invalidType],
  ["type=few+shot", invalidType]
])(
  "GET /prompts?%s returns 400, and the message contains the rule but not the value",
  async (query, expected) => {
    expectError(await send(`${prompts}?${query}`), expected)
  }
)

const model = makePromptRepo(new Map([[home.archive.workspace.id, home.archive]]))
const [support, empty] = home.archive.folders.map(({ id }) => id)
it.each<readonly [query: string, filter: PromptFilter]>([
  ["", {}],
  [`folder_id=${support!.toUpperCase()}`, { folder_id: support }],
  ["tag=gr%C3%B6%C3%9Fe", { tag: "größe" }],
  ["type=few-shot", { type: "few-shot" }],
  [
    `folder_id=${support}&tag=production&type=system`,
    { folder_id: support, tag: "production", type: "system" }
  ],
  ...["", "%00", "%ED%A0%80", "%FF", "%", "%zz"].map((tag) => [`tag=${tag}`, { tag }] as const),
  ...[empty!, newId<FolderId>(), other.archive.folders[0]!.id].map(
    (folder_id) => [`folder_id=${folder_id}`, { folder_id }] as const
  )
])(
  "GET /prompts?%s returns the summaries of exactly the prompts that match the filters and are not archived, most recently updated first",
  async (query, filter) => {
    const { items: data, total } = Effect.runSync(model.list(home.archive.workspace.id, filter, firstPage))
    expectSuccess(await send(`${prompts}?${query}`), { data, meta: { ...firstPage, total } })
  }
)
