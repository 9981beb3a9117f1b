import { describe, expect, it } from "vitest"
import type { PageParams } from "../src/index.ts"
import { useFakeTime, jsonResponse, makeScriptedClient, type Request, settle } from "./support.ts"

useFakeTime()

/** Creates a client of a list. `before` may change the list before each page is returned. */
const makeListClient = (
  ids: Array<string>,
  before: (page: number, ids: Array<string>) => void = () => {}
) => {
  const respondPage = ({ url }: Request) => {
    const query = new URL(url).searchParams
    const page = Number(query.get("page") ?? 1)
    const per_page = Math.min(100, Number(query.get("per_page") ?? 20))
    before(page, ids)
    const data = ids.slice((page - 1) * per_page, page * per_page).map((id) => ({ id }))
    return jsonResponse(200, { data, meta: { page, per_page, total: ids.length } })
  }
  const { client, requests } = makeScriptedClient([respondPage])
  const requestedPages = () => requests.map(({ url }) => Number(new URL(url).searchParams.get("page") ?? 1))
  return { client, requestedPages }
}

const collect = async (list: AsyncIterable<{ readonly id: string }>): Promise<Array<string>> => {
  const ids: Array<string> = []
  for await (const { id } of list) ids.push(id)
  return ids
}

const makeIds = (count: number) => Array.from({ length: count }, (_, index) => `p${index}`)

describe("a list", () => {
  it("awaiting a list returns one page", async () => {
    const { client, requestedPages } = makeListClient(makeIds(7))
    const list = client.prompts.list({ page: 2, per_page: 3 })
    expect(list).toBeInstanceOf(Promise)
    expect(await settle(list)).toEqual({
      value: { data: [{ id: "p3" }, { id: "p4" }, { id: "p5" }], meta: { page: 2, per_page: 3, total: 7 } },
      took: 0
    })
    expect(requestedPages()).toEqual([2])
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
  ])(
    "iterating a list of %i items with %j returns every item from index %i on, once and in order",
    async (count, params, from, pages) => {
      const list = makeListClient(makeIds(count))
      expect(await collect(list.client.prompts.list(params))).toEqual(makeIds(count).slice(from))
      expect(list.requestedPages()).toEqual(pages)
    }
  )

  it("filters and call options apply to every page of an iteration", async () => {
    const { client, requests } = makeScriptedClient([
      () => jsonResponse(200, { data: [{ id: "a" }], meta: { page: 1, per_page: 1, total: 2 } })
    ])
    await collect(client.prompts.list({ per_page: 1, tag: "t" }, { headers: { "x-app": "a" } }))
    expect(requests.map(({ url, headers }) => [new URL(url).search, headers["x-app"]])).toEqual([
      ["?per_page=1&tag=t", "a"],
      ["?page=2&per_page=1&tag=t", "a"]
    ])
  })

  it("an iteration that ends early requests no further page", async () => {
    const { client, requestedPages } = makeListClient(makeIds(9))
    for await (const { id } of client.prompts.list({ per_page: 3 })) if (id === "p2") break
    expect(requestedPages()).toEqual([1])
  })
})

describe("a list that changes between its pages", () => {
  it("an iteration returns each item only once even if the item moves to a later page, and continues after a page without new items", async () => {
    const { client, requestedPages } = makeListClient(makeIds(3), (page, ids) => {
      if (page === 2) ids.unshift("new")
    })
    expect(await collect(client.prompts.list({ per_page: 1 }))).toEqual(makeIds(3))
    expect(requestedPages()).toEqual([1, 2, 3, 4])
  })
})
