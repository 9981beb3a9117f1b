import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import type { PageParams } from "../src/index.ts"
import { failure, fakeTime, json, type Request, refusal, scripted, settle } from "./support.ts"

beforeEach(() => void fakeTime())
afterEach(() => void vi.useRealTimers())

/** A list that answers as the service does, and may be changed before any of its pages is read. */
const listOf = (ids: Array<string>, before: (page: number, ids: Array<string>) => void = () => {}) => {
  const answer = ({ url }: Request) => {
    const query = new URL(url).searchParams
    const page = Number(query.get("page") ?? 1)
    const per_page = Math.min(100, Number(query.get("per_page") ?? 20))
    before(page, ids)
    const data = ids.slice((page - 1) * per_page, page * per_page).map((id) => ({ id }))
    return json(200, { data, meta: { page, per_page, total: ids.length } })
  }
  const { client, requests } = scripted([answer])
  const pages = () => requests.map(({ url }) => Number(new URL(url).searchParams.get("page") ?? 1))
  return { client, pages }
}

const collect = async (list: AsyncIterable<{ readonly id: string }>): Promise<Array<string>> => {
  const ids: Array<string> = []
  for await (const { id } of list) ids.push(id)
  return ids
}

const letters = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)

describe("a list", () => {
  it("that is awaited is one page", async () => {
    const { client, pages } = listOf(letters(7))
    const list = client.prompts.list({ page: 2, per_page: 3 })
    expect(list).toBeInstanceOf(Promise)
    expect(await settle(list)).toEqual({
      value: { data: [{ id: "p3" }, { id: "p4" }, { id: "p5" }], meta: { page: 2, per_page: 3, total: 7 } },
      took: 0
    })
    expect(pages()).toEqual([2])
  })

  it.each<[count: number, params: PageParams, from: number, pages: Array<number>]>([
    [0, {}, 0, [1]],
    [1, {}, 0, [1]],
    [19, {}, 0, [1]],
    [20, {}, 0, [1]],
    [21, {}, 0, [1, 2]],
    [7, { per_page: 3 }, 0, [1, 2, 3]],
    [6, { per_page: 3 }, 0, [1, 2]],
    [7, { per_page: 3, page: 2 }, 3, [2, 3]],
    [7, { per_page: 3, page: 9 }, 7, [9]],
    [250, { per_page: 1000 }, 0, [1, 2, 3]],
    [3, { per_page: 1 }, 0, [1, 2, 3]]
  ])("of %i that is iterated with %j gives every item once, in order", async (count, params, from, pages) => {
    const list = listOf(letters(count))
    expect(await collect(list.client.prompts.list(params))).toEqual(letters(count).slice(from))
    expect(list.pages()).toEqual(pages)
  })

  it("keeps its filters and its limits on every page", async () => {
    const { client, requests } = scripted([
      () => json(200, { data: [{ id: "a" }], meta: { page: 1, per_page: 1, total: 2 } })
    ])
    await collect(client.prompts.list({ per_page: 1, tag: "t" }, { headers: { "x-app": "a" } }))
    expect(requests.map(({ url, headers }) => [new URL(url).search, headers["x-app"]])).toEqual([
      ["?per_page=1&tag=t", "a"],
      ["?page=2&per_page=1&tag=t", "a"]
    ])
  })

  it("reads no page that nobody asks for", async () => {
    const { client, pages } = listOf(letters(9))
    for await (const { id } of client.prompts.list({ per_page: 3 })) if (id === "p2") break
    expect(pages()).toEqual([1])
  })

  it("can be awaited and iterated, and shares its first page", async () => {
    const { client, pages } = listOf(letters(4))
    const list = client.prompts.list({ per_page: 2 })
    expect((await list).meta.total).toBe(4)
    expect(await collect(list)).toEqual(letters(4))
    expect(await collect(list)).toEqual(letters(4))
    expect(pages()).toEqual([1, 2, 2])
  })

  it("of versions does the same", async () => {
    const numbers = [3, 2, 1]
    const { client, requests } = scripted([
      ({ url }) => {
        const page = Number(new URL(url).searchParams.get("page") ?? 1)
        const data = [{ version_number: numbers[page - 1]! }]
        return json(200, { data, meta: { page, per_page: 1, total: 3 } })
      }
    ])
    const seen: Array<number> = []
    for await (const { version_number } of client.prompts.versions.list("p", { per_page: 1 })) {
      seen.push(version_number)
    }
    expect(seen).toEqual(numbers)
    expect(requests.map(({ url }) => new URL(url).pathname)).toEqual(
      Array(3).fill("/api/v1/prompts/p/versions")
    )
  })

  it("ends with the failure of the page that failed", async () => {
    const answers = [
      () => json(200, { data: [{ id: "a" }], meta: { page: 1, per_page: 1, total: 2 } }),
      () => refusal(401, "UNAUTHORIZED", "API key has been revoked")
    ]
    const seen: Array<string> = []
    const { client } = scripted(answers)
    const run = async () => {
      for await (const { id } of client.prompts.list({ per_page: 1 })) seen.push(id)
    }
    expect(await failure(run())).toMatchObject({ name: "UnauthorizedError" })
    expect(seen).toEqual(["a"])
    expect(await failure(collect(client.prompts.list()))).toMatchObject({ name: "UnauthorizedError" })
  })
})

describe("a list that changes between its pages", () => {
  it("gives an item that moves to a later page once", async () => {
    const { client } = listOf(letters(6), (page, ids) => {
      if (page === 2) ids.unshift("new")
    })
    expect(await collect(client.prompts.list({ per_page: 2 }))).toEqual(letters(6))
  })

  it("goes on past a page of which everything was seen", async () => {
    const { client, pages } = listOf(letters(3), (page, ids) => {
      if (page === 2) ids.unshift("new")
    })
    expect(await collect(client.prompts.list({ per_page: 1 }))).toEqual(letters(3))
    expect(pages()).toEqual([1, 2, 3, 4])
  })

  it("ends where it has become shorter, or longer", async () => {
    const shorter = listOf(letters(9), (page, ids) => {
      if (page === 2) ids.splice(3)
    })
    expect(await collect(shorter.client.prompts.list({ per_page: 3 }))).toEqual(letters(3))
    expect(shorter.pages()).toEqual([1, 2])
    const longer = listOf(letters(4), (page, ids) => {
      if (page === 2) ids.push("p4", "p5", "p6")
    })
    expect(await collect(longer.client.prompts.list({ per_page: 3 }))).toEqual(letters(7))
  })

  it("never goes on for ever, whatever the service says", async () => {
    const { client, requests } = scripted([
      () => json(200, { data: [{ id: "same" }], meta: { page: -1e9, per_page: 1, total: 50 } })
    ])
    expect(await collect(client.prompts.list())).toEqual(["same"])
    expect(requests).toHaveLength(50)
    const page = (data: Array<object>) => () => json(200, { data, meta: { page: 1, per_page: 1, total: 50 } })
    const empty = scripted([page([{ id: "a" }]), page([])])
    expect(await collect(empty.client.prompts.list())).toEqual(["a"])
    expect(empty.requests).toHaveLength(2)
  })
})
